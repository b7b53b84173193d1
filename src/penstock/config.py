"""Settings: flags over environment over TOML over defaults; `PENSTOCK_*` is read nowhere else."""

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from penstock.model.alert_rules import AlertSettings
from penstock.model.errors import NOT_SHOWN, InvalidOption, UnknownOption

Seconds = Annotated[float, msgspec.Meta(gt=0)]
Count = Annotated[int, msgspec.Meta(ge=1)]
Grace = Annotated[float, msgspec.Meta(ge=0)]
NotNegative = Annotated[int, msgspec.Meta(ge=0)]
Retries = Annotated[int, msgspec.Meta(ge=0, le=1_000)]
Multiplier = Annotated[float, msgspec.Meta(ge=1, le=10)]
Port = Annotated[int, msgspec.Meta(ge=0, le=65_535)]

_PLACE = re.compile(r" - at `\$\.(\w+)[^`]*`$")
_BLANK = re.compile(r"\$\{(file:)?([^}]+)\}")

_LISTS = frozenset({"extensions", "worker_types", "worker_queues"})

PREFIX = "PENSTOCK_"
DEFAULT_FILE = "penstock.toml"


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that can be tuned; durations are in seconds, sizes in the unit of their name."""

    url: str = "sqlite:///penstock.db"
    dispatch: str | None = None
    tables: str | None = None
    extensions: tuple[str, ...] = ()
    extension: dict[str, dict[str, Any]] = {}
    allow_volatile: bool = False
    payload_limit: Count = 1_048_576
    payload_depth: Count = 64
    redact_payloads: bool = False
    redact_results: bool = False
    max_timeout: Seconds = 3_600
    default_timeout: Seconds = 300
    default_max_retries: Retries | None = None
    default_retry_delay: Grace | None = None
    default_backoff: Multiplier | None = None
    max_snoozes: NotNegative = 100
    queue_limit: NotNegative = 0
    enqueue_timeout: Grace = 30
    worker_types: tuple[str, ...] = ()
    worker_queues: tuple[str, ...] = ()
    worker_name: str | None = None
    concurrency: Count = 20
    prefetch: NotNegative = 500
    lease: Seconds = 60
    renew_interval: Seconds = 20
    poll_interval: Seconds = 1
    heartbeat_interval: Seconds = 10
    timeout_grace: Grace = 5
    cancel_grace: Grace = 5
    hook_timeout: Seconds = 10
    drain_timeout: Grace = 30
    log_jobs: bool = False
    job_log_level: Literal["debug", "info", "warning", "error", "off"] = "info"
    memory_limit_mb: NotNegative = 0
    max_abandoned_threads: NotNegative = 10
    max_internal_errors: NotNegative = 20
    rescue_interval: Seconds = 30
    max_rescues: Count = 3
    prune_interval: Seconds = 3_600
    keep_completed: Grace = 7 * 86_400
    keep_cancelled: Grace = 7 * 86_400
    keep_dead: Grace = 90 * 86_400
    keep_resolved: Grace = 30 * 86_400
    keep_last: dict[str, NotNegative] = {}
    host: str = "127.0.0.1"
    port: Port = 8787
    requests_per_minute: NotNegative = 30_000
    request_limit: Count = 16 * 1_048_576
    access_log: bool = False
    alerts: AlertSettings = AlertSettings()
    trusted_proxies: str = ""
    root_path: str = ""
    tls_certificate: str | None = None
    tls_key: str | None = None
    min_workers: NotNegative = 1
    max_dead_letters: Count = 100

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
    said = _from_environment(env)
    for name, fields in values.get("extension", {}).items():
        said.setdefault("extension", {})[name] = {
            **fields,
            **said.get("extension", {}).get(name, {}),
        }
    values |= said
    values |= {name: value for name, value in overrides.items() if value is not None}
    return _checked(values)


def fill_in(text: str, environ: Mapping[str, str] | None = None) -> tuple[str, list[str]]:
    """A text with `${NAME}` and `${file:PATH}` filled in, and the secrets that it now holds."""
    env = os.environ if environ is None else environ
    secrets: list[str] = []

    def found(blank: re.Match[str]) -> str:
        named = blank[2]
        try:
            secret = Path(named).read_text("utf-8").strip() if blank[1] else env[named]
        except KeyError:
            raise InvalidOption("route", blank[0], "a variable that is set") from None
        except (OSError, ValueError) as error:
            raise InvalidOption("route", blank[0], f"a file to read ({error})") from error
        secrets.append(secret)
        return secret

    return _BLANK.sub(found, text), secrets


def _from_toml(path: Path, *, required: bool) -> dict[str, Any]:
    if not path.is_file():
        if required:
            raise InvalidOption("config", str(path), "an existing TOML file")
        return {}
    try:
        document = tomllib.loads(path.read_text("utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidOption("config", str(path), f"valid TOML ({error})") from error
    return _with_extensions(dict(document.get("penstock", document)))


def _with_extensions(values: dict[str, Any]) -> dict[str, Any]:
    """Tables that are no setting of ours are those of extensions, by their names."""
    own = set(Settings.__struct_fields__)
    theirs = {n: v for n, v in values.items() if n not in own and isinstance(v, dict)}
    rest = {name: value for name, value in values.items() if name not in theirs}
    return {**rest, "extension": theirs | rest.get("extension", {})} if theirs else rest


def _from_environment(env: Mapping[str, str]) -> dict[str, Any]:
    own = set(Settings.__struct_fields__) - {"extension"}
    named = {name: PREFIX + name.upper() for name in own}
    given: dict[str, Any] = {
        name: env[variable] for name, variable in named.items() if variable in env
    }
    for name in _LISTS & given.keys():
        given[name] = [each.strip() for each in given[name].split(",") if each.strip()]
    for variable, value in env.items():
        name, mark, field = variable.removeprefix(PREFIX).lower().partition("__")
        if variable.startswith(PREFIX) and mark:
            given.setdefault("extension", {}).setdefault(name, {})[field] = value
    return given


def _checked(values: dict[str, Any]) -> Settings:
    unknown = sorted(values.keys() - set(Settings.__struct_fields__))
    if unknown:
        raise UnknownOption(unknown[0], Settings.__struct_fields__, "setting")
    try:
        return msgspec.convert(values, Settings, strict=False)
    except msgspec.ValidationError as error:
        named = _PLACE.search(str(error))
        name = named[1] if named else "renew_interval"
        nested = "[" in (named[0] if named else "")
        problem = str(error) if nested else _PLACE.sub("", str(error))
        # Routes may hold secrets, and an error is read by anybody.
        given = NOT_SHOWN if name == "alerts" else values.get(name)
        raise InvalidOption(name, given, f"a valid setting ({problem})") from error
