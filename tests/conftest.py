"""Servers that the tests of one process share; each starts when a test first asks for it.

`PENSTOCK_TEST_POSTGRES` and `PENSTOCK_TEST_REDIS` name other servers to use in their place.
"""

import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import structlog
from hypothesis import settings
from hypothesis.internal.conjecture import providers

from penstock import Penstock
from penstock.model.redact import drop_rules
from penstock.testing import Drained, FakeClock, in_memory
from penstock.testing import drain as drain_app
from proof import TIER
from proof.servers import PostgresServer, RedisServer, ValkeyCluster
from tests.support.databases import Databases, cheapen_password
from tests.support.namespaces import forget_namespaces, in_new_namespace
from tests.support.places import KINDS, LONG, Place, find_place
from tests.support.receiver import Receiver, receiving
from tests.support.tiers import select

pytest_plugins = ["tests.support.times"]

# Thousands of small files are made and forced to disk; no test cuts the power, so memory will do.
MEMORY = Path("/dev/shm")
ROOM = 4 * 2**30
if "TMPDIR" not in os.environ and MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > ROOM:
    os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY)

settings.register_profile("short", derandomize=True, database=None, deadline=None)
settings.register_profile("long", print_blob=True, database=None, deadline=None)
settings.load_profile("long" if LONG else "short")
if not LONG:
    # Hypothesis also draws constants out of the modules that are loaded, which differ between the
    # processes of a run: without them the same test sees the same examples every time.
    setattr(providers, "_get_local_constants", lambda: providers.Constants())  # noqa: B010


def pytest_configure(config: pytest.Config) -> None:
    """Pause the garbage collector while cases are collected: it would find nothing to free."""
    gc.disable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the cases of this run's tier."""
    included, left_out = select(items, TIER)
    config.hook.pytest_deselected(items=left_out)
    items[:] = included


def pytest_collection_finish() -> None:
    """Exempt what was collected from garbage collection: it lives as long as the process."""
    gc.collect()
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Say how to run the cases of a named path that this tier left out."""
    if TIER == "test" and config.args_source is pytest.Config.ArgsSource.ARGS:
        terminalreporter.write_line(
            f"Cases of {' '.join(config.args)} that are thorough or long run with"
            ' make test-all ARGS="…" and make long ARGS="…".'
        )


@pytest.fixture(autouse=True)
def _patient_pings(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a store that is well may take seconds to answer; tests of that say so."""
    monkeypatch.setattr("penstock.operate.health.PING_SECONDS", 60)


@pytest.fixture(autouse=True)
def _own_rules() -> Iterator[None]:
    """An extension's rules hold for the whole process, and not for the next test."""
    yield
    drop_rules()


@pytest.fixture(autouse=True)
def _same_logs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What a test configures ends with it: a logger that keeps its stream would outlive it."""
    before, configure = structlog.get_config(), structlog.configure
    configured = structlog.is_configured()
    monkeypatch.setattr(
        structlog,
        "configure",
        lambda **how: configure(**how | {"cache_logger_on_first_use": False}),
    )
    yield
    if configured:
        configure(**before)
    else:
        structlog.reset_defaults()


@pytest.fixture(scope="session")
def databases() -> Iterator[Databases]:
    """Makes databases on the PostgreSQL of this process."""
    elsewhere = os.environ.get("PENSTOCK_TEST_POSTGRES")
    if elsewhere:
        with closing(Databases(elsewhere)) as databases:
            yield databases
    else:
        with PostgresServer() as server:
            cheapen_password(server.url)
            with closing(Databases(server.url)) as databases:
                yield databases


@pytest.fixture
def postgres_url(databases: Databases) -> Iterator[str]:
    """A new, empty database."""
    url = databases.create()
    yield url
    databases.drop(url)


@pytest.fixture
def postgres_store_url(databases: Databases) -> Iterator[str]:
    """A database that holds an empty store; a test that changes its schema takes a new one."""
    url = databases.take_store()
    yield url
    databases.give_back(url)


@pytest.fixture(scope="session")
def valkey_server_url() -> Iterator[str]:
    """The Valkey, or the Redis named in the environment, of this process."""
    elsewhere = os.environ.get("PENSTOCK_TEST_REDIS")
    if elsewhere:
        yield elsewhere
        forget_namespaces(elsewhere)
    else:
        with RedisServer() as server:
            yield server.url


@pytest.fixture(scope="session")
def redis6_server_url() -> Iterator[str]:
    """The Redis 6.2 of this process."""
    with RedisServer(kind="redis6") as server:
        yield server.url


@pytest.fixture(scope="session")
def valkey_cluster_server_url() -> Iterator[str]:
    """The cluster of this process, by one of its nodes."""
    with ValkeyCluster() as cluster:
        yield cluster.url


@pytest.fixture
def valkey_url(valkey_server_url: str) -> str:
    """A new namespace on Valkey."""
    return in_new_namespace(valkey_server_url)


@pytest.fixture
def redis6_url(redis6_server_url: str) -> str:
    """A new namespace on Redis 6.2."""
    return in_new_namespace(redis6_server_url)


@pytest.fixture
def valkey_cluster_url(valkey_cluster_server_url: str) -> str:
    """A new namespace on the cluster, which puts it on one of the nodes."""
    return in_new_namespace(valkey_cluster_server_url)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test that is to hold on every store once on each."""
    test = metafunc.definition
    marked = LONG or test.get_closest_marker("every_store") is not None
    chosen = any("kind_of_store" in mark.args[0] for mark in test.iter_markers("parametrize"))
    fixtures = metafunc._arg2fixturedefs.get("kind_of_store")
    if marked and not chosen and fixtures and not fixtures[-1].params:
        metafunc.parametrize("kind_of_store", KINDS)


@pytest.fixture
def kind_of_store() -> str:
    """The embedded one, unless the test runs on each."""
    return KINDS[0]


@pytest.fixture
def place(kind_of_store: str, request: pytest.FixtureRequest) -> Place:
    """An empty store."""
    return find_place(kind_of_store, request)


@pytest.fixture
def clock() -> FakeClock:
    """A clock that stands still until the test moves it."""
    return FakeClock()


@pytest.fixture
def app(clock: FakeClock) -> Iterator[Penstock]:
    """An application on an empty store in memory that reads `clock`."""
    with in_memory(clock=clock) as application:
        yield application


@pytest.fixture
def drain(app: Penstock) -> Callable[..., Coroutine[Any, Any, Drained]]:
    """`await drain()` runs what is due on `app`; with `through=3600` the next hour as well."""
    return partial(drain_app, app)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A service that notices can be sent to."""
    with receiving() as made:
        yield made
