"""When a server is refused: it is too old, could evict jobs, keeps nothing, cannot be written."""

import re
from collections.abc import Mapping

from penstock.model.errors import ServerTooOld, StoreReadOnly, StoreUnavailable, UnsafeServer
from penstock.store.redis.errors import NAME_PRIMARY

OLDEST = (6, 2)
SAFE_POLICY = "noeviction"

Info = Mapping[str, str]


def read_info(answer: bytes) -> Info:
    """The fields of an answer to INFO."""
    lines = answer.decode("utf-8", "replace").splitlines()
    pairs = (line.partition(":") for line in lines if ":" in line)
    return {name: value for name, _, value in pairs}


def check_server(url: str, info: Info) -> None:
    """Refuse a server that could not keep the store's promises."""
    if version_of(info) < OLDEST:
        found = f"{product(info)} {version_text(info)}"
        raise ServerTooOld(url, found, ".".join(map(str, OLDEST)))
    if info.get("loading", "0") != "0":
        raise StoreUnavailable(url, "it is still loading its data")
    if info.get("role") == "slave" and not clustered(info):
        raise StoreReadOnly(url, NAME_PRIMARY)
    check_policy(url, info)


def check_policy(url: str, info: Info) -> None:
    """Refuse a server that deletes keys of its own accord when its memory is full."""
    policy = info.get("maxmemory_policy")
    if policy != SAFE_POLICY:
        told = "it does not tell its maxmemory-policy"
        problem = told if policy is None else f"its maxmemory-policy is {policy}"
        raise UnsafeServer(url, problem, f"set it to {SAFE_POLICY}")


def is_volatile(info: Info, saves: str | None) -> bool:
    """Whether everything is gone when the server stops; `saves` is its setting, None if not told.

    Without the setting only a snapshot that was made tells that some are made.
    """
    if info.get("aof_enabled") == "1":
        return False
    return info.get("rdb_last_bgsave_time_sec", "-1") == "-1" if saves is None else not saves


def refuse_volatile(url: str) -> UnsafeServer:
    """Say that a server keeps nothing, and what to do about it."""
    return UnsafeServer(
        url,
        "it writes nothing to disk, so everything is gone when it stops",
        "set appendonly to yes there, or allow_volatile=true in the settings or in this URL",
    )


def version_of(info: Info) -> tuple[int, ...]:
    """The version of Redis that a server speaks; Valkey tells it too."""
    numbers = re.findall(r"\d+", info.get("redis_version", ""))
    return tuple(int(number) for number in numbers[:3])


def version_text(info: Info) -> str:
    """The version a server calls its own."""
    return info.get("valkey_version") or info.get("redis_version") or "unknown"


def product(info: Info) -> str:
    """What kind of server it is."""
    return "Valkey" if "valkey_version" in info else "Redis"


def clustered(info: Info) -> bool:
    """Whether it is a node of a cluster."""
    return info.get("cluster_enabled") == "1" or info.get("redis_mode") == "cluster"
