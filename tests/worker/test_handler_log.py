"""What handlers say through `logging` is kept with the job and shown on the console."""

import gc
import io
import json
import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog

from penstock import Context, Penstock
from penstock.config import Settings
from penstock.logs import configure_logs
from penstock.testing import drain
from penstock.worker.handler_log import HandlerLog
from penstock.worker.running import Running
from tests.worker import handlers
from tests.worker.running import working

log = logging.getLogger(__name__)


Lines = Callable[[], list[dict[str, Any]]]


@pytest.fixture
def unconfigured(capsys: pytest.CaptureFixture[str]) -> Iterator[Callable[[], Lines]]:
    """Calling it takes what pytest configured away; then the lines are read from what it gives."""
    root, level = logging.getLogger(), logging.getLogger().level

    def begin() -> Lines:
        root.handlers[:] = []
        root.setLevel(logging.WARNING)
        configure_logs(json=True, level="debug")
        return read

    def read() -> list[dict[str, Any]]:
        assert (root.handlers, root.level) == ([], logging.WARNING)  # as it was found
        return [json.loads(line) for line in capsys.readouterr().err.splitlines()]

    yield begin
    root.setLevel(level)


def an_app(**settings: Any) -> Penstock:
    app = Penstock(settings=Settings(url="sqlite:///:memory:", **settings))

    @app.job
    async def plain(name: str) -> None:
        log.debug("looking for %s", name)
        log.info("hello %s, password=hunter2-and-more", name)

    @app.job
    def thread(ctx: Context) -> None:
        ctx.log("by the context")
        log.warning("from a thread")

    @app.job
    async def noisy() -> None:
        library = logging.getLogger("httpx")
        for level in (logging.DEBUG, logging.INFO, logging.WARNING):
            record = logging.LogRecord(
                "httpx", level, "/venv/site-packages/httpx.py", 1, "request", (), None
            )
            library.handle(record)
        logging.getLogger("penstock.store").info("ours")
        try:
            raise KeyError("customer")
        except KeyError:
            log.exception("no luck")

    return app


async def kept(app: Penstock, job_id: str) -> list[tuple[str, str]]:
    return [(line.level, line.message) for line in await app.logs(job_id)]


async def test_lines_reach_the_job_and_the_console_redacted_and_with_the_job_named(
    unconfigured: Callable[[], Lines],
) -> None:
    lines_logged = unconfigured()
    app = an_app()
    async with app:
        job = await app.find_type("plain").enqueue("ann")
        await drain(app)
        told = "hello ann, password=[REDACTED_PASSWORD]"
        assert await kept(app, job.id) == [("info", told)]
    [line] = [line for line in lines_logged() if line.get("logger") == __name__]
    assert (line["event"], line["level"]) == (told, "info")
    assert (line["job_type"], line["job_id"]) == ("plain", job.id)


async def test_lines_of_a_thread_are_kept_beside_those_of_the_context(
    unconfigured: Callable[[], Lines],
) -> None:
    lines_logged = unconfigured()
    app = an_app()
    async with app:
        job = await app.find_type("thread").enqueue()
        await drain(app)
        assert await kept(app, job.id) == [("info", "by the context"), ("warning", "from a thread")]
    assert [line["job_id"] for line in lines_logged() if line["event"] == "from a thread"] == [
        job.id
    ]


async def test_lines_of_a_process_are_kept_and_shown(
    unconfigured: Callable[[], Lines], tmp_path: Path
) -> None:
    lines_logged = unconfigured()
    app = handlers.app
    app.settings = app.settings.replace(url=f"sqlite:///{tmp_path}/jobs.db")
    app.__dict__.pop("store", None)
    async with app:
        job = await handlers.say.enqueue("token=abcdef123456789")
        await drain(app)
        assert await kept(app, job.id) == [("info", "said token=[REDACTED_TOKEN]")]
    [line] = [line for line in lines_logged() if line.get("logger") == handlers.__name__]
    assert (line["event"], line["job_type"]) == ("said token=[REDACTED_TOKEN]", "say")


async def test_libraries_are_heard_from_warnings_on_and_exceptions_with_their_traceback(
    unconfigured: Callable[[], Lines],
) -> None:
    lines_logged = unconfigured()
    app = an_app(job_log_level="debug")
    async with app:
        job = await app.find_type("noisy").enqueue()
        await drain(app)
        [warning, error] = await kept(app, job.id)
    assert warning == ("warning", "request")
    assert error[0] == "error"
    assert error[1].startswith("no luck\nTraceback")
    assert error[1].endswith("KeyError: 'customer'")
    assert [line["event"] for line in lines_logged() if line.get("logger") == "httpx"] == [
        "request"
    ]


@pytest.mark.parametrize(
    ("level", "lines"), [("debug", 2), ("info", 1), ("warning", 0), ("off", 0)]
)
async def test_a_setting_says_from_which_level_on(
    unconfigured: Callable[[], Lines], level: str, lines: int
) -> None:
    lines_logged = unconfigured()
    app = an_app(job_log_level=level)
    async with app:
        job = await app.find_type("plain").enqueue("ann")
        await drain(app)
        assert len(await kept(app, job.id)) == lines
    assert len([line for line in lines_logged() if line.get("logger") == __name__]) == lines


async def test_who_configured_logging_gets_no_line_twice_and_keeps_his_levels(
    unconfigured: Callable[[], Lines],
) -> None:
    lines_logged = unconfigured()
    root, records = logging.getLogger(), list[str]()

    class Own(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append(record.getMessage())

    own = Own()
    root.addHandler(own)
    try:
        app = an_app()
        async with app:
            quiet = await app.find_type("plain").enqueue("ann")
            loud = await app.find_type("thread").enqueue()
            await drain(app)
            assert await kept(app, quiet.id) == []  # his level is WARNING
            assert ("warning", "from a thread") in await kept(app, loud.id)
    finally:
        root.removeHandler(own)
    assert records == ["from a thread"]
    assert [line for line in lines_logged() if line.get("logger")] == []


async def test_what_belongs_to_no_job_is_shown_from_warnings_on(
    unconfigured: Callable[[], Lines],
) -> None:
    lines_logged = unconfigured()
    app = an_app()
    async with app, working(app):
        log.info("a program that has a worker in it")
        log.warning("short of memory")
    assert [line["event"] for line in lines_logged() if line.get("logger") == __name__] == [
        "short of memory"
    ]


async def test_two_workers_in_one_process_keep_a_line_once(
    unconfigured: Callable[[], Lines],
) -> None:
    unconfigured()
    one, two = an_app(), an_app()
    async with one, two, working(two):
        job = await one.find_type("plain").enqueue("ann")
        await drain(one)
        assert len(await kept(one, job.id)) == 1


async def test_an_execution_is_freed_without_a_garbage_collection() -> None:
    app = an_app()
    async with app:
        await app.enqueue_many([app.find_type("plain").new("ann") for _ in range(20)])
        gc.collect()
        gc.disable()
        try:
            await drain(app)
            left = [
                each for each in gc.get_objects() if type(each) is Running and each.type.app is app
            ]
        finally:
            gc.enable()
    assert left == []


async def test_a_structlog_that_writes_through_logging_does_not_go_round_in_circles(
    unconfigured: Callable[[], Lines], capsys: pytest.CaptureFixture[str]
) -> None:
    unconfigured()
    structlog.configure(logger_factory=structlog.stdlib.LoggerFactory())
    app = an_app()
    async with app:
        job = await app.find_type("thread").enqueue()
        await drain(app)
        assert ("warning", "from a thread") in await kept(app, job.id)
        assert len(await kept(app, job.id)) == 2
    assert "RecursionError" not in capsys.readouterr().err


async def test_what_the_garbage_collection_logs_while_words_are_being_kept_is_kept_too(
    unconfigured: Callable[[], Lines],
) -> None:
    unconfigured()
    app = an_app()

    @app.job
    async def messy(ctx: Context) -> None:
        ctx.log("before")
        with ctx._reporter._reports.lock:  # type: ignore[attr-defined]
            log.warning("from a __del__")

    async with app:
        job = await messy.enqueue()
        await drain(app)
        assert ("warning", "from a __del__") in await kept(app, job.id)


def test_no_thread_that_logs_waits_for_the_line_of_another() -> None:
    free: list[bool] = []

    def tell(*_: object) -> None:
        assert handler.lock is not None
        take = handler.lock.acquire
        thread = threading.Thread(target=lambda: free.append(take(blocking=False)))
        thread.start()
        thread.join()

    handler = HandlerLog("info", (), tell)
    handler.handle(logging.LogRecord("shop", logging.WARNING, "shop.py", 1, "late", (), None))
    assert free == [True]


async def test_the_lines_of_a_worker_are_shown_although_another_in_its_process_has_ended(
    unconfigured: Callable[[], Lines],
) -> None:
    lines_logged = unconfigured()
    one, two = an_app(), an_app()
    async with one, two:
        async with working(one):
            running = working(two)
            await running.__aenter__()
        job = await two.find_type("plain").enqueue("ann")
        await job.result(timeout=30)
        await running.__aexit__(None, None, None)
    assert len([line for line in lines_logged() if line.get("logger") == __name__]) == 1


async def test_a_line_that_a_handler_of_its_own_logger_shows_is_not_shown_again(
    unconfigured: Callable[[], Lines],
) -> None:
    lines_logged = unconfigured()
    own = logging.StreamHandler(io.StringIO())
    own.setLevel(logging.WARNING)
    package = logging.getLogger(__name__.partition(".")[0])
    package.addHandler(own)
    try:
        app = an_app()
        async with app:
            await app.find_type("plain").enqueue("ann")
            job = await app.find_type("thread").enqueue()
            await drain(app)
            assert ("warning", "from a thread") in await kept(app, job.id)
    finally:
        package.removeHandler(own)
    assert own.stream.getvalue() == "from a thread\n"
    shown = [line["event"] for line in lines_logged() if line.get("logger") == __name__]
    assert len(shown) == 1
    assert shown[0].startswith("hello ann")
