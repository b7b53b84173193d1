"""What a measured process is told."""

from typing import Any

import msgspec


class Call(msgspec.Struct, frozen=True):
    """A probe, such as `raw.drain`, and its arguments."""

    probe: str
    arguments: dict[str, Any]
