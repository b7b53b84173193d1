"""Settings: flags over environment over TOML over defaults. The environment is read only here."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from penstock.model.errors import InvalidOption

PREFIX = "PENSTOCK_"
DEFAULT_FILE = "penstock.toml"


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that can be tuned; durations are in seconds, sizes in the unit of their name."""

    url: str = "sqlite:///penstock.db"
    payload_limit: int = 1_048_576
    payload_depth: int = 64
    max_timeout: float = 3_600
    max_snoozes: int = 100
    concurrency: int = 20
    prefetch: int = 500
    lease: float = 60
    renew_interval: float = 20
    poll_interval: float = 1
    heartbeat_interval: float = 10
    timeout_grace: float = 5
    cancel_grace: float = 5
    drain_timeout: float = 30
    memory_limit_mb: int = 0
    max_abandoned_threads: int = 10
    max_internal_errors: int = 20
    rescue_interval: float = 30
    max_rescues: int = 3
    prune_interval: float = 3_600
    keep_completed: float = 7 * 86_400
    keep_cancelled: float = 7 * 86_400
    keep_dead: float = 90 * 86_400
    keep_last: dict[str, int] = {}

    def replace(self, **changes: Any) -> "Settings":
        """A copy with other values; None leaves a value as it is."""
        given = {name: value for name, value in changes.items() if value is not None}
        return _checked({**msgspec.structs.asdict(self), **given}, "setting")


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
    return _checked(values, "setting")


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
    known = set(Settings.__struct_fields__)
    named = {key.removeprefix(PREFIX).lower(): value for key, value in env.items()}
    return {name: named[name] for name in known & named.keys() if PREFIX + name.upper() in env}


def _checked(values: dict[str, Any], kind: str) -> Settings:
    try:
        return msgspec.convert(values, Settings, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidOption(kind, str(error), "a known setting of the right type") from error
