"""What is refused, and how, whatever the store."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core import checks
from django.core.management import CommandError, call_command
from django.db import connections, transaction
from django.test import override_settings

import penstock.django
from penstock import Penstock
from penstock.django import job_options
from penstock.django.backend import worker_app
from penstock.django.framework import NAME, InvalidTask, TaskResultDoesNotExist, task_backends
from penstock.django.management.commands.penstock import with_target
from penstock.django.results import priority_of
from penstock.model.errors import InvalidOption
from tests.django.conftest import BACKEND, backend_on, use_database, use_postgres
from tests.django.shop import tasks
from tests.support.places import Place


def test_django_is_not_loaded_before_somebody_asks() -> None:
    code = "import sys, penstock.django; sys.exit('django' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_priorities_are_mapped_in_order_and_nought_is_in_the_middle() -> None:
    mapped = [priority_of(each) for each in range(100, -101, -1)]
    assert mapped == sorted(mapped)
    assert set(mapped) == set(range(1, 11))
    assert [priority_of(each) for each in (100, 1, 0, -1, -100)] == [1, 4, 5, 6, 10]


def test_an_argument_that_is_no_json_is_refused_with_what_to_do(app: Penstock) -> None:
    with pytest.raises(TypeError, match=r"JSON cannot hold .*pass a primary key"):
        tasks.add.enqueue(object())
    assert app.sync.find() == []


def test_a_queue_that_the_settings_do_not_name_is_refused(app: Penstock) -> None:
    only_mail = {"default": {"BACKEND": BACKEND, "QUEUES": ["mail"]}}
    with (
        override_settings(TASKS=only_mail),
        pytest.raises(InvalidTask, match="'default' is not valid"),
    ):
        tasks.add.enqueue()
    with pytest.raises(InvalidTask, match="'queue_name' is 'a b', but it must be a name"):
        tasks.add.using(queue_name="a b")


def test_no_result_is_found_of_an_id_that_is_unknown_or_of_a_job_that_is_no_task(
    app: Penstock,
) -> None:
    with pytest.raises(TaskResultDoesNotExist):
        task_backends["default"].get_result("123")

    @app.job
    async def ours() -> None: ...

    job = app.sync.enqueue(ours.new())
    with pytest.raises(TaskResultDoesNotExist, match=job.id):
        task_backends["default"].get_result(job.id)


def test_options_of_a_job_are_not_those_of_a_task() -> None:
    with pytest.raises(InvalidOption, match="'queue' is 'mail', but it must be given to @task"):
        job_options(queue="mail")
    with pytest.raises(InvalidOption, match=r"'key' .* every call would share it"):
        job_options(key="k")
    with pytest.raises(InvalidOption, match="written below @task"):
        job_options(timeout=5)(tasks.add)


def test_a_task_has_the_options_of_its_function(app: Penstock) -> None:
    assert app.find_type("tests.django.shop.tasks.fail").defaults.max_retries == 0
    assert app.find_type("tests.django.shop.tasks.add").defaults.timeout_ms == 300_000


def test_one_sqlite_file_for_two_libraries_is_an_error_of_the_checks(
    app: Penstock, tmp_path: Path
) -> None:
    assert list(task_backends["default"].check()) == []
    before = connections.settings["default"]["NAME"]
    use_database(
        ENGINE="django.db.backends.sqlite3", NAME=app.settings.url.removeprefix("sqlite:///")
    )
    [error] = task_backends["default"].check()
    use_database(ENGINE="django.db.backends.sqlite3", NAME=before)
    assert (error.id, error.level) == ("penstock.E002", checks.ERROR)


def test_a_setting_that_does_not_exist_is_an_error_of_the_checks(app: Penstock) -> None:
    with override_settings(TASKS={"default": {"BACKEND": BACKEND, "OPTIONS": {"ulr": "x"}}}):
        [error] = task_backends["default"].check()
    assert error.id == "penstock.E001"
    assert "ulr" in error.msg


def test_a_backend_can_use_an_application_of_its_own(app: Penstock) -> None:
    target = {"app": "tests.django.shop.jobs:app"}
    with override_settings(TASKS={"default": {"BACKEND": BACKEND, "OPTIONS": target}}):
        from tests.django.shop.jobs import app as own

        found: Any = worker_app("default")
        assert found is own
        assert {"ship", "tests.django.shop.tasks.add"} <= found.types.keys()
    with (
        override_settings(
            TASKS={"default": {"BACKEND": BACKEND, "OPTIONS": target | {"url": "x"}}}
        ),
        pytest.raises(InvalidOption, match=r"'url' .* the application that 'app' names"),
    ):
        worker_app("default")


def test_a_backend_of_another_kind_has_no_application(app: Penstock) -> None:
    immediate = {"default": {"BACKEND": f"{NAME}.backends.immediate.ImmediateBackend"}}
    with (
        override_settings(TASKS=immediate),
        pytest.raises(InvalidOption, match="'ImmediateBackend', but it must be"),
    ):
        _ = penstock.django.app
    with pytest.raises(AttributeError, match="no attribute 'nobody'"):
        _ = penstock.django.nobody


def test_on_another_postgresql_database_a_task_waits_for_the_commit(
    postgres_store_url: str,
) -> None:
    """Which database a connection leads to is found out by asking both."""
    use_postgres(postgres_store_url, dbname="postgres")
    with override_settings(TASKS={"default": backend_on(Place("postgres", postgres_store_url))}):
        app: Any = worker_app("default")
        for _ in range(2):
            with transaction.atomic():
                result = tasks.add.enqueue()
                assert result.enqueued_at is None
            assert result.enqueued_at is not None
        assert len(app.sync.find()) == 2
        app.sync.close()


@pytest.mark.parametrize("kind_of_store", ["postgres"])
def test_a_transaction_that_is_to_be_rolled_back_takes_no_task(app: Penstock) -> None:
    with transaction.atomic():
        transaction.set_rollback(True)
        with pytest.raises(transaction.TransactionManagementError):
            tasks.add.enqueue()


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("worker --burst", "worker penstock.django:app --burst"),
        ("up", "up penstock.django:app"),
        ("worker shop.jobs:app", "worker shop.jobs:app"),
        ("enqueue ship {}", "enqueue --app penstock.django:app ship {}"),
        ("enqueue --app shop:app ship", "enqueue --app shop:app ship"),
        ("jobs ls", "jobs ls"),
        ("", ""),
    ],
)
def test_a_command_that_takes_an_application_is_given_that_of_the_project(
    words: str, meant: str
) -> None:
    assert " ".join(with_target(words.split(), "penstock.django:app")) == meant


def test_a_command_looks_at_the_store_of_the_project(
    app: Penstock, capsys: pytest.CaptureFixture[str]
) -> None:
    result = tasks.add.enqueue()
    call_command("penstock", "--backend", "default", "jobs", "show", result.id)
    assert "tests.django.shop.tasks.add" in capsys.readouterr().out
    with pytest.raises(CommandError, match="no backend 'mail' in TASKS"):
        call_command("penstock", "--backend", "mail", "jobs", "ls")
