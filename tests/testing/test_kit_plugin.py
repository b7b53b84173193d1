import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import penstock

pytest_plugins = ["pytester"]

# Its entry point loads it where penstock is installed.
INSTALLED = "penstock" in {entry.name for entry in entry_points(group="pytest11")}
PLUGIN = () if INSTALLED else ("-p", "penstock.testing.plugin")

PLAIN = """
from penstock import Status
from penstock.testing import assert_enqueued

async def test_the_fixtures_work_together(penstock_app, penstock_clock, penstock_drain):
    @penstock_app.job
    async def send(to: str) -> str:
        return to

    job = await send.options(delay=60).enqueue("ada")
    assert (await penstock_drain()).completed == 0
    penstock_clock.advance(60)
    assert (await penstock_drain()).completed == 1
    assert await job.result(timeout=30) == "ada"

async def test_days_pass(penstock_app, penstock_clock, penstock_time):
    @penstock_app.job
    async def send(to: str) -> None: ...

    await penstock_app.schedule("daily", send.new("ada"), cron="0 12 * * *")
    await penstock_time.advance(days=3)
    assert [one.what for one in penstock_time.history] == ["fired", "completed"] * 3
    assert penstock_time.clock is penstock_clock

async def test_every_test_has_a_store_of_its_own(penstock_app):
    assert await penstock_app.find() == []

def test_they_work_without_an_event_loop(penstock_app):
    @penstock_app.job
    def send(to: str) -> None: ...
    penstock_app.sync.enqueue(send.new("ada"))
    assert_enqueued(penstock_app.sync, send, to="ada")
"""

ADAPTED = """
import pytest
from penstock import Penstock
from penstock.testing import in_memory

project = Penstock("sqlite:///never-made.db")

@project.job
async def task() -> str:
    return "ran"

@pytest.fixture
def penstock_app(penstock_clock):
    with in_memory(project, penstock_clock):
        yield project

async def test_the_projects_jobs_run_in_memory(penstock_app, penstock_drain):
    job = await task.options(delay=5).enqueue()
    await penstock_drain(through=5)
    assert await job.result(timeout=30) == "ran"
"""

COMMON_NAMES = ("app", "clock", "drain", "time")
UNRELATED = "\n".join(f"def test_{name}({name}): ..." for name in COMMON_NAMES)


@pytest.mark.thorough
def test_a_project_gets_the_fixtures_may_override_them_and_keeps_common_names(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(penstock.__file__).parents[1]))
    pytester.makepyfile(test_plain=PLAIN, test_adapted=ADAPTED, test_unrelated=UNRELATED)
    pytester.makeini("[pytest]\nasyncio_mode = auto\n")
    result = pytester.runpytest_subprocess("-p", "no:cacheprovider", *PLUGIN)
    result.assert_outcomes(passed=5, errors=len(COMMON_NAMES))
    result.stdout.fnmatch_lines_random([f"*fixture '{name}' not found" for name in COMMON_NAMES])


def test_a_function_is_not_hidden_by_the_module_called_like_it() -> None:
    code = (
        "from penstock.testing import Drained, VirtualTime, drain, eager, virtual_time; "
        "print(callable(drain), callable(eager), callable(virtual_time))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"] * 3


def test_loading_the_plugin_imports_almost_nothing() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules); import penstock.testing.plugin; "
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = {name.strip(" '[]") for name in done.stdout.strip().split(",")}
    assert {n for n in loaded if n.startswith("penstock")} == {
        "penstock",
        "penstock.testing",
        "penstock.testing.plugin",
    }
    assert not loaded & {"asyncio", "msgspec", "apsw", "structlog", "psutil"}
