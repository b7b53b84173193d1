"""A remote application has the methods of a local one, or there is a reason why not."""

import inspect
import re
from typing import Any

import pytest

from penstock import Penstock
from penstock.app.sync import SyncPenstock
from penstock.operate.controls import Controls
from penstock.operate.dead import DeadLetters
from penstock.operate.followers import Followers
from penstock.operate.schedules import Schedules
from penstock.remote.client import Remote
from penstock.remote.connect import SyncRemote
from penstock.remote.controls import RemoteControls, RemoteFollowers
from penstock.remote.dead import RemoteDeadLetters
from penstock.remote.schedules import RemoteSchedules

DECLARES = "it declares what workers run, and a remote caller runs nothing"
STORE = "it needs the store itself"
LOCAL_ONLY = {
    "admit": "the server's application asks its own hooks",
    "beside": STORE,
    "breaker": DECLARES,
    "check_names": DECLARES,
    "checked": "a part of declaring types; the server checks options against its own settings",
    "connection": STORE,
    "declare": DECLARES,
    "default_options": DECLARES,
    "find_type": "`types` has those of the application that was given",
    "home": DECLARES,
    "include": DECLARES,
    "job": DECLARES,
    "limit": DECLARES,
    "middleware": DECLARES,
    "on_complete": DECLARES,
    "on_failed": DECLARES,
    "on_progress": DECLARES,
    "on_start": DECLARES,
    "own_types": DECLARES,
    "read": STORE,
    "register": DECLARES,
    "scheduled": DECLARES,
    "store": STORE,
    "table_store": STORE,
    "transact": STORE,
    "matching": "`count` and `purge` take the filter itself; a list of ids has no bound",
    "new_job": "a part of `put`",
    "put": "`remote.schedule` does it; here it takes a job that is already built",
}
REMOTE_ONLY = {"ask", "health", "stats", "url", "workers"}
PAIRS = [
    (Penstock, Remote),
    (Controls, RemoteControls),
    (Followers, RemoteFollowers),
    (Schedules, RemoteSchedules),
    (DeadLetters, RemoteDeadLetters),
    (SyncPenstock, SyncRemote),
]
PAIR_NAMES = [local.__name__ for local, _ in PAIRS]


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def written(annotation: Any) -> str:
    """A type as it is written, wherever its names come from and whether in quotes or not."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"(?:\w+\.)+(?=\w)|['\"]", "", text)


def shape(member: Any) -> list[tuple[Any, ...]] | str:
    """The parameters of a method with their kinds, defaults and types, and what it answers."""
    if not inspect.isfunction(member):
        return "a property"
    found = inspect.signature(member)
    parameters = [
        (each.name, each.kind, each.default, written(each.annotation))
        for each in found.parameters.values()
    ]
    return [*parameters, ("answer", written(found.return_annotation))]


@pytest.mark.parametrize(("local", "remote"), PAIRS, ids=PAIR_NAMES)
def test_every_public_method_is_there_or_has_a_reason_not_to_be(local: type, remote: type) -> None:
    lacking = public(local) - public(remote)
    assert lacking <= LOCAL_ONLY.keys()
    for name in public(local) & public(remote):
        mine = inspect.getattr_static(remote, name)
        theirs = inspect.getattr_static(local, name)
        assert shape(mine) == shape(theirs), name
        assert inspect.iscoroutinefunction(mine) == inspect.iscoroutinefunction(theirs), name


def test_no_reason_is_given_for_a_method_that_is_there() -> None:
    given = set().union(*(public(local) - public(remote) for local, remote in PAIRS))
    assert given == LOCAL_ONLY.keys()


def test_what_only_a_remote_application_has_is_known() -> None:
    assert public(Remote) - public(Penstock) == REMOTE_ONLY


def test_every_method_that_waits_has_one_that_blocks() -> None:
    waiting = {
        name
        for name in public(Remote)
        if inspect.iscoroutinefunction(inspect.getattr_static(Remote, name))
    }
    assert waiting - public(SyncRemote) == {"open"}
