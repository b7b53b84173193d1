"""`TASKS = {"default": {"BACKEND": "penstock.django.PenstockBackend"}}`: Django's tasks as jobs."""

import threading
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import django
from django.apps import apps
from django.core import checks
from django.core.exceptions import ImproperlyConfigured
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.utils.module_loading import autodiscover_modules

from penstock.app.job_type import Prepared
from penstock.app.penstock import Penstock
from penstock.config import load_settings
from penstock.django.framework import (
    BaseTaskBackend,
    InvalidTask,
    TaskResultDoesNotExist,
    task_backends,
    task_enqueued,
)
from penstock.django.handlers import send_when_ended, type_of
from penstock.django.results import (
    due,
    enqueued_at,
    find_task,
    new_result,
    note_of,
    priority_of,
    result_of,
)
from penstock.model.errors import InvalidOption, PenstockError
from penstock.model.not_found import JobNotFound
from penstock.model.options import check_name
from penstock.model.store_errors import OtherDatabase


class PenstockBackend(BaseTaskBackend):
    """Django's tasks as durable jobs, enqueued with the transaction they belong to.

    OPTIONS are settings of Penstock (`url`, `dispatch`, …) or name an application (`app`), and
    `database` is the alias of the database whose transactions enqueues belong to.
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def __init__(self, alias: str, params: dict[str, Any]) -> None:
        super().__init__(alias, params)
        self.enqueue_on_commit: bool = params.get("ENQUEUE_ON_COMMIT", True)
        self._database: str = self.options.get("database", DEFAULT_DB_ALIAS)
        self._is_elsewhere = False

    @property
    def app(self) -> Penstock:
        """The application that all backends of this alias share."""
        return _applications.find(self.alias, self.options)

    def validate_task(self, task: Any) -> None:
        """Refuse a task that cannot be enqueued, and remember all others for workers."""
        super().validate_task(task)
        try:
            check_name("queue_name", task.queue_name)
            check_name("name", task.module_path)
        except InvalidOption as error:
            raise InvalidTask(str(error)) from error
        _applications.note(self.alias, task)

    def enqueue(self, task: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Enqueue a task; inside `atomic` it takes effect only if the transaction commits."""
        self.validate_task(task)
        result = new_result(task, args, kwargs)
        prepared = self._prepare(task, result)
        object.__setattr__(result, "id", prepared.job.id)
        connection = connections[self._database]
        if not self.enqueue_on_commit or not _in_transaction(connection):
            self._enqueue_now(result, prepared)
        elif not self._join(connection, result, prepared):
            transaction.on_commit(partial(self._enqueue_now, result, prepared), self._database)
        return result

    def get_result(self, result_id: str) -> Any:
        """Return what has become of a task that was enqueued anywhere."""
        app = self.app
        try:
            job = app.sync.get(result_id)
        except JobNotFound:
            raise TaskResultDoesNotExist(result_id) from None
        task = find_task(job, self.alias)
        if task is None:
            raise TaskResultDoesNotExist(result_id)
        return result_of(job, app.sync.run(app.executions(result_id)), task, self.alias)

    def check(self, **kwargs: Any) -> Iterable[checks.CheckMessage]:
        """Look for settings that cannot work; `manage.py check` asks."""
        try:
            app = self.app
            url = app.store.url
        except (PenstockError, ImproperlyConfigured) as error:
            yield checks.Error(str(error), id="penstock.E001")
            return
        for alias in connections:
            settings = connections[alias].settings_dict
            if settings["ENGINE"].endswith("sqlite3") and _is_file_of(url, settings["NAME"]):
                yield checks.Error(
                    f"TASKS[{self.alias!r}] and DATABASES[{alias!r}] name the same SQLite file, "
                    "and two SQLite libraries on one file corrupt it.",
                    hint="Give Penstock a file of its own: OPTIONS = {'url': 'sqlite:///jobs.db'}.",
                    id="penstock.E002",
                )

    def _prepare(self, task: Any, result: Any) -> Prepared[Any]:
        chosen = type_of(self.app, task).options(
            queue=task.queue_name,
            priority=priority_of(task.priority),
            metadata=note_of(task),
            at=due(task),
        )
        return chosen.new(args=result.args, kwargs=result.kwargs)

    def _join(self, connection: Any, result: Any, prepared: Prepared[Any]) -> bool:
        """Enqueue through Django's own connection, if it leads to the database of the jobs."""
        if self._is_elsewhere or not _may_join(connection, self.app):
            return False
        connection.validate_no_broken_transaction()
        try:
            self.app.sync.enqueue(prepared, connection=connection.connection)
        except OtherDatabase:
            self._is_elsewhere = True
            return False
        object.__setattr__(result, "enqueued_at", enqueued_at(result.id))
        tell = partial(task_enqueued.send, type(self), task_result=result)
        if connection.in_atomic_block:
            transaction.on_commit(tell, self._database)
        else:
            tell()
        return True

    def _enqueue_now(self, result: Any, prepared: Prepared[Any]) -> None:
        self.app.sync.enqueue(prepared)
        object.__setattr__(result, "enqueued_at", enqueued_at(result.id))
        task_enqueued.send(type(self), task_result=result)


def worker_app(alias: str) -> Penstock | None:
    """Set Django up and return the application of a backend, with every task registered.

    Tasks are found in the modules `tasks` of the installed applications. None if no backend has
    this alias.
    """
    if not apps.ready:
        django.setup()
    if alias not in task_backends.settings:
        return None
    backend = task_backends[alias]
    if not isinstance(backend, PenstockBackend):
        kind = type(backend).__name__
        raise InvalidOption(f"TASKS[{alias!r}]", kind, "'penstock.django.PenstockBackend'")
    autodiscover_modules("tasks")
    app = backend.app
    for task in _applications.tasks_of(alias):
        type_of(app, task)
    return app


class _Applications:
    """One application per alias; Django makes a backend for every thread."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._apps: dict[str, tuple[dict[str, Any], Penstock]] = {}
        self._tasks: dict[str, dict[str, Any]] = {}

    def find(self, alias: str, options: dict[str, Any]) -> Penstock:
        """Return the application; options that a test has changed make another."""
        with self._lock:
            known = self._apps.get(alias)
            if known is None or known[0] != options:
                app = _load(dict(options))
                send_when_ended(app, partial(self._task, alias))
                self._apps[alias] = known = (options, app)
            return known[1]

    def note(self, alias: str, task: Any) -> None:
        """Remember a task; the first of a function, before `using` changed anything."""
        tasks = self._tasks.setdefault(alias, {})
        known = tasks.get(task.module_path)
        if known is None or known.func is not task.func:
            tasks[task.module_path] = task

    def tasks_of(self, alias: str) -> list[Any]:
        """Return every task that was declared for a backend."""
        return list(self._tasks.get(alias, {}).values())

    def _task(self, alias: str, path: str) -> Any:
        return self._tasks.get(alias, {}).get(path)


_applications = _Applications()


def _load(options: dict[str, Any]) -> Penstock:
    options.pop("database", None)
    target = options.pop("app", None)
    if target is None:
        return Penstock(settings=load_settings(**options))
    if options:
        name, value = options.popitem()
        raise InvalidOption(name, value, "a setting of the application that 'app' names")
    from penstock.worker.target import load_app

    return load_app(target)


def _in_transaction(connection: Any) -> bool:
    manual = connection.connection is not None and not connection.autocommit
    return bool(connection.in_atomic_block or manual)


def _may_join(connection: Any, app: Penstock) -> bool:
    if connection.vendor != "postgresql" or not app.store.url.startswith("postgres"):
        return False
    from psycopg import Connection

    return isinstance(connection.connection, Connection)


def _is_file_of(url: str, name: Any) -> bool:
    scheme, _, path = url.partition("?")[0].partition(":///")
    return scheme == "sqlite" and Path(path).absolute() == Path(name).absolute()
