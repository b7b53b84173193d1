"""Checking, one by one, what this store promises."""

from collections.abc import Iterator

from penstock.model.store_errors import StoreError
from penstock.store.contract import Durability
from penstock.store.redis.migrate import LAYOUT, version
from penstock.store.redis.server import (
    OLDEST,
    SAFE_POLICY,
    Info,
    Server,
    clustered,
    is_volatile,
    product,
    version_of,
    version_text,
)

_NOTHING_KEPT = (
    "writes nothing to disk: everything is lost when the server stops. Set appendonly to yes."
)
_SNAPSHOTS = (
    "keeps snapshots only: what came after the last one is lost when the server stops. "
    "Set appendonly to yes."
)
_FSYNC = {
    "always": "with appendfsync always: nothing acknowledged is lost when the server stops",
    "everysec": "with appendfsync everysec: a crash of the machine may lose about a second",
    "no": "with appendfsync no: a crash of the machine may lose what it had not yet written back",
    "": "with an append-only file: a crash of the machine may lose about a second, "
    "unless appendfsync is always (the server does not tell)",
}
_REPLICAS = "A replica that takes over may lack what it had not received."


async def inspect(server: Server) -> Durability:
    """Every check with its outcome and a word on it."""
    info = await server.info()
    fsync = await server.setting("appendfsync") or ""
    saves = await server.setting("save")
    checks = [*_server_checks(info), *_disk_checks(info, fsync), await _write_check(server)]
    found = await version(server)
    checks.append(("layout", found == LAYOUT, f"version {found}, this penstock knows {LAYOUT}"))
    return Durability(_promise(info, fsync, saves), checks)


def _promise(info: Info, fsync: str, saves: str | None) -> str:
    if info.get("aof_enabled") == "1":
        kept = _FSYNC.get(fsync, _FSYNC[""]) + "."
    else:
        kept = _NOTHING_KEPT if is_volatile(info, saves) else _SNAPSHOTS
    replicas = int(info.get("connected_slaves", "0"))
    told = f"{product(info)} {kept}"
    return f"{told} {_REPLICAS}" if replicas or clustered(info) else told


def _server_checks(info: Info) -> Iterator[tuple[str, bool, str]]:
    name = f"{product(info)} {version_text(info)}"
    oldest = ".".join(map(str, OLDEST))
    yield "server", version_of(info) >= OLDEST, f"{name}, {oldest} is the oldest that will do"
    policy = info.get("maxmemory_policy", "not told")
    yield "eviction", policy == SAFE_POLICY, f"maxmemory-policy is {policy}"
    used, most = int(info.get("used_memory", "0")), int(info.get("maxmemory", "0"))
    room = f"of {most / 1e6:.0f} MB" if most else "and no maxmemory"
    yield "memory", not most or used < 0.9 * most, f"{used / 1e6:.1f} MB used {room}"
    role = info.get("role", "unknown")
    replicas = info.get("connected_slaves", "0")
    yield "role", role == "master", f"{role} with {replicas} replicas"


def _disk_checks(info: Info, fsync: str) -> Iterator[tuple[str, bool, str]]:
    on = info.get("aof_enabled") == "1"
    yield "append-only file", on, f"appendfsync is {fsync or 'not told'}" if on else "off"
    for name, field in (("last append", "aof_last_write_status"), ("rewrite", _REWRITE)):
        if on and field in info:
            yield name, info[field] == "ok", f"{field} is {info[field]}"
    saved = info.get("rdb_last_bgsave_status", "ok")
    yield "last snapshot", saved == "ok", f"rdb_last_bgsave_status is {saved}"


async def _write_check(server: Server) -> tuple[str, bool, str]:
    """Whether it takes writes now, asked by one that changes nothing."""
    try:
        await server.ask("DEL", server.prefix + "nothing")
    except StoreError as error:
        return "writes", False, str(error)
    return "writes", True, "are taken"


_REWRITE = "aof_last_bgrewrite_status"
