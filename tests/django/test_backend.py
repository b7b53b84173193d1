import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections, transaction
from django.test import override_settings
from django.utils import timezone

from penstock import Penstock
from penstock.django import with_connections
from penstock.django.framework import (
    task_backends,
    task_enqueued,
    task_finished,
    task_started,
)
from penstock.testing import drain
from tests.django.conftest import backend_on
from tests.django.shop import tasks
from tests.support.places import Place

pytestmark = [pytest.mark.every_store, pytest.mark.thorough("postgres+redis", "postgres", "valkey")]


def run(app: Penstock) -> None:
    drain(app.sync, through=60)


def jobs(app: Penstock) -> list[str]:
    return [job.id for job in app.sync.find()]


@pytest.mark.quick("postgres+redis", "postgres", "valkey")
def test_a_task_is_run_by_a_worker_and_its_result_found_by_id(app: Penstock) -> None:
    result = tasks.add.enqueue(1, 2, three=3)
    assert (result.status, result.args, result.kwargs) == ("READY", [1, 2], {"three": 3})
    assert tasks.add.get_result(result.id) == result

    run(app)
    result.refresh()
    assert (result.status, result.return_value, result.attempts) == ("SUCCESSFUL", 6, 1)
    assert result.enqueued_at <= result.started_at <= result.finished_at
    assert result.last_attempted_at == result.started_at
    assert result.worker_ids == [app.sync.run(app.executions(result.id))[0].worker]


async def test_the_same_can_be_awaited(app: Penstock) -> None:
    result = await tasks.greet.aenqueue("ada")
    await drain(app)
    found = await tasks.greet.aget_result(result.id)
    assert (found.status, found.return_value) == ("SUCCESSFUL", "hello ada")
    assert found.task == tasks.greet
    assert (await app.get(result.id)).queue == "mail"


def test_an_error_has_its_class_and_its_traceback_and_the_task_is_tried_again(
    app: Penstock, place: Place
) -> None:
    result = tasks.fail_once.enqueue(place.kind)
    run(app)
    found = tasks.fail_once.get_result(result.id)
    assert (found.status, found.return_value, found.attempts) == ("SUCCESSFUL", place.kind, 2)
    [error] = found.errors
    assert error.exception_class is tasks.OutOfStock
    assert error.traceback.endswith("left\n")
    assert "shop/tasks.py" in error.traceback


def test_a_task_whose_attempts_are_used_up_has_failed(app: Penstock) -> None:
    result = tasks.fail.enqueue()
    run(app)
    result.refresh()
    assert (result.status, result.is_finished, len(result.errors)) == ("FAILED", True, 1)
    with pytest.raises(ValueError, match="Task failed"):
        _ = result.return_value


def test_a_task_may_end_as_a_job_may(app: Penstock) -> None:
    result = tasks.give_up.enqueue()
    run(app)
    result.refresh()
    assert (result.status, result.attempts) == ("FAILED", 1)
    assert result.errors[0].exception_class.__name__ == "JobFailed"
    assert result.errors[0].traceback == "Dead: nobody wants it\n"


def test_a_value_that_is_no_json_fails_the_task(app: Penstock) -> None:
    result = tasks.return_a_lock.enqueue()
    run(app)
    result.refresh()
    assert result.status == "FAILED"
    assert result.errors[0].exception_class is TypeError
    assert "Unsupported type" in result.errors[0].traceback


def test_a_cancelled_task_has_failed_and_says_so(app: Penstock) -> None:
    result = tasks.add.enqueue()
    app.sync.cancel(result.id, "the order was withdrawn")
    result.refresh()
    assert result.status == "FAILED"
    assert result.errors[0].exception_class.__name__ == "JobCancelled"
    assert "withdrawn" in result.errors[0].traceback


def test_a_task_that_waits_for_its_time_is_ready(app: Penstock) -> None:
    tomorrow = timezone.now() + timedelta(days=1)
    result = tasks.add.using(run_after=tomorrow, priority=-7, queue_name="night").enqueue()
    run(app)
    found = task_backends["default"].get_result(result.id)
    assert found.status == "READY"
    assert found.task == tasks.add.using(run_after=tomorrow, priority=-7, queue_name="night")
    job = app.sync.get(result.id)
    assert (job.queue, job.priority) == ("night", 6)
    assert datetime.fromtimestamp(job.scheduled_at / 1000, UTC) == tomorrow.replace(
        microsecond=tomorrow.microsecond // 1000 * 1000
    )


def test_the_context_tells_the_attempt_and_the_result(app: Penstock) -> None:
    result = tasks.about.enqueue("ink")
    in_loop = tasks.about_in_loop.enqueue()
    run(app)
    result.refresh()
    in_loop.refresh()
    assert result.return_value == [2, result.id, "RUNNING", ["ink"], 1]
    assert in_loop.return_value == [1, in_loop.id]


def test_a_task_enqueues_another(app: Penstock) -> None:
    results = [tasks.pass_on.enqueue("ada"), tasks.pass_on_in_loop.enqueue("bob")]
    run(app)
    for result, name in zip(results, ("ada", "bob"), strict=True):
        result.refresh()
        other = tasks.greet.get_result(result.return_value)
        assert (other.status, other.return_value) == ("SUCCESSFUL", f"hello {name}")


def test_a_task_of_a_transaction_exists_if_and_only_if_it_commits(
    app: Penstock, database: Any
) -> None:
    with transaction.atomic():
        database.cursor().execute("INSERT INTO orders VALUES ('ink')")
        kept = tasks.count_orders.enqueue()
        assert jobs(app) == []
    with transaction.atomic():
        tasks.add.enqueue()
        transaction.set_rollback(True)
    with transaction.atomic():
        with transaction.atomic():
            tasks.add.enqueue()
            transaction.set_rollback(True)
        outer = tasks.add.enqueue()
    assert sorted(jobs(app)) == sorted([kept.id, outer.id])
    assert kept.enqueued_at is not None

    run(app)
    kept.refresh()
    assert kept.return_value == 1


def test_where_the_jobs_are_in_the_same_database_both_are_one_commit(
    app: Penstock, database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    later: list[Any] = []
    monkeypatch.setattr(transaction, "on_commit", lambda call, using: later.append(call))
    with transaction.atomic():
        tasks.add.enqueue()
    joined = app.settings.url.startswith("postgres")
    assert len(jobs(app)) == joined
    [call] = later
    assert (call.func == task_enqueued.send) is joined


def test_without_enqueue_on_commit_a_task_does_not_wait(app: Penstock, place: Place) -> None:
    at_once = {"default": backend_on(place, ENQUEUE_ON_COMMIT=False)}
    with override_settings(TASKS=at_once), transaction.atomic():
        result = tasks.add.enqueue()
        assert jobs(app) == [result.id]


def test_connections_are_checked_before_a_task_and_given_back_after_it(
    app: Penstock, database: Any
) -> None:
    """With CONN_MAX_AGE at 0 none is left over for the next task on the same thread."""
    counted = tasks.count_orders.enqueue()
    run(app)
    seen = tasks.is_connected.enqueue()
    run(app)
    counted.refresh()
    seen.refresh()
    assert (counted.return_value, seen.return_value) == (0, False)


async def test_the_end_of_an_async_task_leaves_the_connection_of_another_open(
    database: Any,
) -> None:
    opened, ended = asyncio.Event(), asyncio.Event()

    def connection() -> Any:
        database.ensure_connection()
        return database.connection

    @with_connections
    async def long() -> bool:
        before = await sync_to_async(connection)()
        opened.set()
        await ended.wait()
        return before is await sync_to_async(connection)()

    @with_connections
    async def short() -> None:
        await opened.wait()

    running = asyncio.create_task(long())
    await short()
    ended.set()
    assert await running


async def test_the_connection_of_an_async_task_is_closed_with_its_thread(
    database: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(connections.settings["default"], "CONN_MAX_AGE", None)

    def connect() -> Any:
        connections["default"].ensure_connection()
        return connections["default"]

    @with_connections
    async def look() -> Any:
        return await sync_to_async(connect)()

    assert (await look()).connection is None


def test_a_task_whose_queue_has_left_the_settings_is_still_run_and_found(
    app: Penstock, place: Place
) -> None:
    result = tasks.add.using(queue_name="old").enqueue(1, 2)
    again = tasks.about.using(queue_name="old").enqueue("ink")
    without_old = {"default": backend_on(place, QUEUES=["default", "mail"])}
    with override_settings(TASKS=without_old):
        assert tasks.add.get_result(result.id).task.queue_name == "old"
        run(app)
        found = tasks.add.get_result(result.id)
        assert (found.status, found.return_value) == ("SUCCESSFUL", 3)
        assert tasks.about.get_result(again.id).attempts == 2


def test_signals_are_sent_when_a_task_starts_and_ends(
    app: Penstock, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    heard: list[tuple[str, str, int, Any]] = []

    def note(signal: Any) -> Any:
        def receiver(sender: type, task_result: Any, **_: Any) -> None:
            names = {task_enqueued: "enqueued", task_started: "started", task_finished: "finished"}
            told = (task_result.status, task_result.attempts, len(task_result.errors))
            heard.append((names[signal], *told))

        signal.connect(receiver, weak=False)
        return receiver

    receivers = [(signal, note(signal)) for signal in (task_enqueued, task_started, task_finished)]
    try:
        tasks.fail_once.enqueue(f"signals of {place.kind}")
        run(app)
        tasks.fail.enqueue()
        run(app)
    finally:
        for signal, receiver in receivers:
            signal.disconnect(receiver)
    assert heard == [
        ("enqueued", "READY", 0, 0),
        ("started", "RUNNING", 1, 0),
        ("started", "RUNNING", 2, 1),
        ("finished", "SUCCESSFUL", 2, 1),
        ("enqueued", "READY", 0, 0),
        ("started", "RUNNING", 1, 0),
        ("finished", "FAILED", 1, 1),
    ]
    assert "shop.tasks.OutOfStock: never again" in caplog.text
