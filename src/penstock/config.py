"""Settings: flags over environment over TOML over defaults. The environment is read only here."""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from penstock.model.errors import InvalidOption

Seconds = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]
Grace = Annotated[float, msgspec.Meta(ge=0)]
NotNegative = Annotated[int, msgspec.Meta(ge=0)]

_PLACE = re.compile(r" - at `\$\.(\w+)[^`]*`$")

PREFIX = "PENSTOCK_"
DEFAULT_FILE = "penstock.toml"


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that can be tuned; durations are in seconds, sizes in the unit of their name."""

    url: str = "sqlite:///penstock.db"
    dispatch: str | None = None
    dispatch_window: NotNegative = 0
    payload_limit: Count = 1_048_576
    payload_depth: Count = 64
    max_timeout: Seconds = 3_600
    max_snoozes: NotNegative = 100
    queue_limit: NotNegative = 10_000
    enqueue_timeout: Grace = 30
    concurrency: Count = 20
    prefetch: NotNegative = 500
    lease: Seconds = 60
    renew_interval: Seconds = 20
    poll_interval: Seconds = 1
    heartbeat_interval: Seconds = 10
    timeout_grace: Grace = 5
    cancel_grace: Grace = 5
    drain_timeout: Grace = 30
    memory_limit_mb: NotNegative = 0
    max_abandoned_threads: NotNegative = 10
    max_internal_errors: NotNegative = 20
    rescue_interval: Seconds = 30
    max_rescues: Count = 3
    prune_interval: Seconds = 3_600
    keep_completed: Grace = 7 * 86_400
    keep_cancelled: Grace = 7 * 86_400
    keep_dead: Grace = 90 * 86_400
    keep_last: dict[str, NotNegative] = {}

    def __post_init__(self) -> None:
        if self.renew_interval >= self.lease:
            raise ValueError(
                f"renewals every {self.renew_interval:g} s do not keep a lease of {self.lease:g} s"
            )

    def replace(self, **changes: Any) -> "Settings":
        """A copy with other values; None leaves a value as it is."""
        given = {name: value for name, value in changes.items() if value is not None}
        return _checked({**msgspec.structs.asdict(self), **given})


def load_settings(
    file: str | Path | None = None,
    environ: Mapping[str, str] | None = None,
    **overrides: Any,
) -> Settings:
    """Settings from `penstock.toml` (or the file named), `PENSTOCK_*` and keyword overrides."""
    env = os.environ if environ is None else environ
    named = file or env.get(PREFIX + "CONFIG")
    values = _from_toml(Path(named or DEFAULT_FILE), required=named is not None)
    values |= _from_environment(env)
    values |= {name: value for name, value in overrides.items() if value is not None}
    return _checked(values)


def _from_toml(path: Path, *, required: bool) -> dict[str, Any]:
    if not path.is_file():
        if required:
            raise InvalidOption("config", str(path), "an existing TOML file")
        return {}
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidOption("config", str(path), f"valid TOML ({error})") from error
    return dict(document.get("penstock", document))


def _from_environment(env: Mapping[str, str]) -> dict[str, Any]:
    named = {name: PREFIX + name.upper() for name in Settings.__struct_fields__}
    return {name: env[variable] for name, variable in named.items() if variable in env}


def _checked(values: dict[str, Any]) -> Settings:
    unknown = sorted(values.keys() - set(Settings.__struct_fields__))
    if unknown:
        known = ", ".join(Settings.__struct_fields__)
        raise InvalidOption(unknown[0], values[unknown[0]], f"one of the settings: {known}")
    try:
        return msgspec.convert(values, Settings, strict=False)
    except msgspec.ValidationError as error:
        named = _PLACE.search(str(error))
        name = named[1] if named else "renew_interval"
        problem = _PLACE.sub("", str(error))
        raise InvalidOption(name, values.get(name), f"a valid setting ({problem})") from error
