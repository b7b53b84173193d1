"""Where the process of a job finds its type again."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from penstock import Blueprint, Context, Penstock, Settings
from penstock.model.errors import InvalidOption
from penstock.testing import drain, in_memory
from penstock.worker.target import NotFoundInProcess, Place, find_type, load_app, places_of
from tests.worker import handlers
from tests.worker.test_processes import pretend_rescued

SCRIPT = """
import asyncio, json, os
from penstock import ErrorClass, Penstock, Worker

app = Penstock("sqlite:///work.db")


class Mine(Exception):
    pass


@app.job(run_in="process", max_retries=0, classify={Mine: ErrorClass.VALIDATION_ERROR})
def fails():
    raise Mine("mine")


@app.job
async def where():
    return os.getpid()


async def main():
    late = app.job(name="late", run_in="process")(os.getpid)
    async with app:
        jobs = [await type_.enqueue() for type_ in (fails, where, late)]
        await app.store._db.write(
            lambda tx: tx.connection.execute("UPDATE jobs SET rescues = 1 WHERE type = 'where'")
        )
        await Worker(app, burst=True, upkeep=False).run()
        failed, rescued, registered_late = [await job.get() for job in jobs]
        pid = str(os.getpid())
        (execution,) = await app.executions(failed.id)
        print(json.dumps([
            execution.error_class, rescued.result not in (None, pid), registered_late.result == pid
        ]))


if __name__ == "__main__":
    asyncio.run(main())
"""


@pytest.mark.parametrize("how", [["shop.py"], ["-m", "shop"]], ids=["script", "module"])
@pytest.mark.thorough
def test_a_program_that_runs_its_own_worker_is_found_again(tmp_path: Path, how: list[str]) -> None:
    (tmp_path / "shop.py").write_text(SCRIPT)
    ran = subprocess.run(
        [sys.executable, *how], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert ran.returncode == 0, ran.stderr
    expected = ["validation_error", True, True]
    assert msgspec.json.decode(ran.stdout.splitlines()[-1]) == expected


def test_a_script_that_starts_its_worker_whenever_it_is_loaded_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "shop.py"
    script.write_text(
        "from penstock import Penstock, Worker\n"
        "app = Penstock('sqlite:///:memory:')\n"
        "@app.job\n"
        "async def task(): ...\n"
        "Worker(app)\n"
    )
    place = Place("__penstock_main__", "app", str(script))
    with pytest.raises(NotFoundInProcess, match="if __name__ == '__main__'"):
        find_type([place], Settings(), "task")
    assert sys.modules["__main__"].__name__ == "__main__"


async def test_a_type_that_no_process_can_find_runs_in_its_worker() -> None:
    app = Penstock("sqlite:///:memory:", settings=Settings())

    @app.job(run_in="process")
    def asks(ctx: Context) -> int:
        ctx.log("here")
        return os.getpid()

    @app.job(run_in="process")
    async def asks_async() -> int:
        return os.getpid()

    @app.job
    async def suspect() -> int:
        return os.getpid()

    with in_memory(app), capture_logs() as lines:
        jobs = [await type_.enqueue() for type_ in (asks, asks, asks_async, suspect)]
        await pretend_rescued(app, jobs[-1].id)
        await drain(app)
        assert [await job.result(30) for job in jobs] == [os.getpid()] * 4
        assert [line.message for line in await app.logs(jobs[0].id)] == ["here"]
    warned = [line["job_type"] for line in lines if line["event"] == "process_impossible"]
    assert sorted(warned) == ["asks", "asks_async", "suspect"]


async def test_a_type_that_its_module_registers_later_runs_in_its_worker() -> None:
    late = handlers.made("registered-later", run_in="process")
    with in_memory(handlers.app):
        job = await late.enqueue()
        await drain(handlers.app)
        assert await job.result(30) == os.getpid()


def test_the_target_comes_first_and_the_script_last(monkeypatch: pytest.MonkeyPatch) -> None:
    app = Penstock("sqlite:///:memory:", settings=Settings())
    app.target = "shop.jobs:jobs.app"
    shop, main = ModuleType("shop"), ModuleType("__main__")
    shop.queue, main.queue, main.__file__ = app, app, __file__  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "__main__", main)
    monkeypatch.setitem(sys.modules, "shop", shop)
    assert places_of(app) == (
        Place("shop.jobs", "jobs.app"),
        Place("shop", "queue"),
        Place("__penstock_main__", "queue", __file__),
    )


def test_an_application_is_found_by_a_type_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    mail = ModuleType("mail")
    mail.send = Penstock(settings=Settings()).job(os.getpid)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mail", mail)
    assert places_of(mail.send.app) == (Place("mail", "send"),)


def test_a_shell_is_nowhere_to_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    shell = ModuleType("__main__")
    shell.app = Penstock(settings=Settings())  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "__main__", shell)
    assert places_of(shell.app) == ()


def test_an_application_remembers_where_it_was_loaded_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handlers.app, "target", None)
    assert load_app("tests.worker.handlers").target == "tests.worker.handlers"
    assert places_of(handlers.app)[0] == Place("tests.worker.handlers", "app")


@pytest.mark.parametrize(
    ("target", "where"),
    [
        ("no_such_shop.jobs:app", "start in the folder that holds 'no_such_shop', or name that"),
        ("tests.no_such_part:app", r"\(No module named 'tests.no_such_part'\)"),
    ],
)
def test_a_module_that_is_not_found_is_refused_with_where_to_start(target: str, where: str) -> None:
    with pytest.raises(InvalidOption, match=where):
        load_app(target)


@pytest.mark.parametrize(
    ("name", "told"),
    [("ap", "there is none; try shop:app"), ("site", "'site' is a dict; try shop:app")],
)
def test_a_name_that_is_no_application_is_told_what_is_there(
    monkeypatch: pytest.MonkeyPatch, name: str, told: str
) -> None:
    shop = ModuleType("shop")
    vars(shop).update(app=Penstock(settings=Settings()), site={})
    monkeypatch.setitem(sys.modules, "shop", shop)
    with pytest.raises(InvalidOption, match=re.escape(told)):
        load_app(f"shop:{name}")


@pytest.mark.parametrize("handler", [handlers.Counter(1), handlers.Counter])
def test_what_is_no_function_is_no_handler(handler: Any) -> None:
    with pytest.raises(InvalidOption, match="a function or a coroutine function"):
        Penstock(settings=Settings()).job(name="counts")(handler)


def test_a_type_of_a_blueprint_that_nobody_included_is_passed_by(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spare = ModuleType("spare")
    spare.unused = Blueprint().job(os.getpid)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "spare", spare)
    assert "tests.worker.handlers" in {place.module for place in places_of(handlers.app)}
