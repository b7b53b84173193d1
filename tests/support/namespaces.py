"""Namespaces for tests on one Redis server."""

import os
from uuid import uuid4

import redis


def in_new_namespace(server_url: str) -> str:
    """A URL for an installation of its own on this server."""
    name = f"{_prefix()}{uuid4().hex}"
    return f"{server_url}{'&' if '?' in server_url else '?'}namespace={name}"


def forget_namespaces(server_url: str) -> None:
    """Remove what the tests of this process have left on a server that outlives them."""
    with redis.Redis.from_url(server_url) as client:
        for key in client.scan_iter(match=f"{{{_prefix()}*", count=1000):
            client.unlink(key)


def _prefix() -> str:
    return f"test-{os.getpid()}-"
