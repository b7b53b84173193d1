"""What a server process is told."""

from typing import Any

import msgspec

from penstock.server.door import Door


class ServerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """All a server process needs to know, passed to it as JSON.

    Without a target it knows the store and no job type.
    """

    door: Door
    target: str | None = None
    url: str | None = None
    settings: dict[str, Any] = {}
    upkeep: bool = False
    greeting: str | None = None
    opens_browser: bool = False
    log_json: bool = False
    log_level: str = "info"
    parent_pid: int | None = None
