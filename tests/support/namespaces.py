"""Namespaces for tests on one Redis server."""

from uuid import uuid4


def in_new_namespace(server_url: str) -> str:
    """A URL for an installation of its own on this server."""
    return f"{server_url}{'&' if '?' in server_url else '?'}namespace=test-{uuid4().hex}"
