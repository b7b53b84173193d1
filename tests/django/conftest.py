"""One Django project for all tests of a process; each test has its own store and database."""

import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import django
import pytest
from asgiref.local import Local
from django.conf import settings
from django.test.utils import override_settings
from psycopg.conninfo import conninfo_to_dict

from penstock import Penstock
from penstock.testing import FakeClock
from tests.support.places import Place

BACKEND = "penstock.django.PenstockBackend"
OWN = find_spec("django.tasks") is not None
"""Django 6 has tasks itself; before it, django-tasks brings them."""

if not settings.configured:
    settings.configure(
        INSTALLED_APPS=[*([] if OWN else ["django_tasks"]), "penstock.django", "tests.django.shop"],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
        TASKS={"default": {"BACKEND": BACKEND, "QUEUES": []}},
        ROOT_URLCONF="tests.django.shop.urls",
        ALLOWED_HOSTS=["*"],
        USE_TZ=True,
    )
    django.setup()


def use_database(**database: Any) -> None:
    """Lead `default` to a database."""
    from django.db import connections

    connections.close_all()
    connections.settings = connections.configure_settings({"default": database})
    connections._connections = Local(connections.thread_critical)


def use_postgres(url: str, **changes: str) -> None:
    """Lead `default` to the database of a URL."""
    where = conninfo_to_dict(url.partition("?")[0], **changes)
    names = {"NAME": "dbname", "HOST": "host", "PORT": "port", "USER": "user"}
    told = {name: where.get(key, "") for name, key in (names | {"PASSWORD": "password"}).items()}
    use_database(ENGINE="django.db.backends.postgresql", **told)


def backend_on(place: Place, **params: Any) -> dict[str, Any]:
    """The settings of a backend whose jobs are in a store."""
    options = {name: value for name, value in place.settings.items() if value}
    return {"BACKEND": BACKEND, "QUEUES": [], "OPTIONS": options} | params


@pytest.fixture
def database(place: Place, tmp_path: Path) -> Iterator[Any]:
    """A connection of Django: to the database of the jobs if that is PostgreSQL, else to a file."""
    from django.db import connection

    if place.kind.startswith("postgres"):
        use_postgres(place.url)
    else:
        use_database(ENGINE="django.db.backends.sqlite3", NAME=str(tmp_path / "shop.sqlite3"))
    connection.cursor().execute("CREATE TABLE orders (name text)")
    yield connection
    connection.cursor().execute("DROP TABLE IF EXISTS orders")
    connection.close()


@pytest.fixture
def app(place: Place, database: Any) -> Iterator[Penstock]:
    """The application behind the backend `default`, whose tasks a worker would know.

    Its clock stands still, a moment after now: ids tell the time, too.
    """
    from penstock.django.backend import worker_app

    with override_settings(TASKS={"default": backend_on(place)}):
        found = worker_app("default")
        assert found is not None
        found.__dict__["_clock"] = FakeClock(round(time.time() * 1000) + 60_000)
        yield found
        found.sync.close()
