"""A look past the store, at the keys of its namespace."""

from typing import Any

import redis

from penstock.store.redis.connect import address_of


class RawKeys:
    """Plain commands on keys that are named without their prefix."""

    def __init__(self, url: str) -> None:
        self.prefix = address_of(url).prefix
        self.client = redis.Redis.from_url(url.partition("?")[0])

    def ask(self, command: str, key: str, *arguments: Any) -> Any:
        """The answer to a command about one key."""
        return self.client.execute_command(command, self.prefix + key, *arguments)

    def names(self) -> set[str]:
        """All keys, without their prefix."""
        found = self.client.scan_iter(self.prefix + "*", count=1000)
        return {key.decode().removeprefix(self.prefix) for key in found}

    def close(self) -> None:
        """Let go of the server."""
        self.client.close()
