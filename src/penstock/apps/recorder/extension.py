"""The recorder as one object; everything that takes time to load stands as a text."""

from msgspec import Struct

from penstock.apps.recorder.platforms import TYPES
from penstock.extension import Extension, Table, Tables


class RecorderSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[penstock.recorder]` in TOML, or `PENSTOCK_RECORDER__RULES`.

    `rules` is a TOML file with rules of your own beside ours; `pseudonyms` replaces a value by the
    same word throughout a session instead of one for all.
    """

    rules: str = ""
    pseudonyms: bool = False


TABLES = Tables(
    extension="recorder",
    package="penstock.apps.recorder",
    tables=(
        Table("recorder_messages", key=("id",), tenant="tenant_id", person="person"),
        Table("recorder_redactions", key=("id",), tenant="tenant_id"),
    ),
)

recorder = Extension(
    name="recorder",
    title="Recorder",
    needs="recorder",
    help="See what AI coding assistants did: sessions, costs, learnings, and what was taken out.",
    settings=RecorderSettings,
    tables=TABLES,
    adds={"events.types": TYPES},
)
