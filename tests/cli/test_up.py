import signal
import sys
from contextlib import suppress
from pathlib import Path

import httpx
import psutil
import pytest

from tests.support.places import LONG

from .conftest import ENVIRONMENT, Cli
from .running import Running, until

APP = "tests.cli.shop:app"
SERVER = "penstock.server.process"
WORKER = "penstock.worker.process"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'work.db'}"


def ended(up: Running, job_id: str) -> bool:
    return up.get(f"/api/jobs/{job_id}").json()["status"] == "completed"


def greet(up: Running) -> str:
    made = up.post("/api/jobs", {"type": "greet", "payload": {"name": "ada"}})
    assert made.status_code == 201, made.text
    return str(made.json()["id"])


def test_one_command_runs_jobs_behind_an_api_replaces_what_is_killed_and_drains_at_sigterm(
    tmp_path: Path, url: str
) -> None:
    with Running(tmp_path, "up", APP, "--port", "0", "--url", url, "--processes", "2") as up:
        for part in (None, SERVER, WORKER):
            if part is not None:
                victim = until(lambda part=part: up.family(part))[0]
                victim.kill()
                until(lambda part=part, gone=victim.pid: replaced(up, part, gone))
            job = greet(up)
            until(lambda job=job: ended(up, job))
        assert up.get("/").status_code == 200
        family = up.family()
        assert len(up.family(WORKER)) == 2
        assert len(up.family(SERVER)) == 1
        # Everybody on the machine can read them, and a URL may hold a password.
        seen = [Path(f"/proc/{part.pid}/cmdline").read_bytes() for part in family]
        assert not any(b"work.db" in line for line in seen)
        assert up.stop() == 0
    _, alive = psutil.wait_procs(family, timeout=30)
    assert not alive
    assert "Traceback" not in up.err
    assert f"on {url};" in up.out
    assert up.out.count("http://") == 1


def replaced(up: Running, part: str, gone: int) -> bool:
    """Whether another process has taken the place of one that is gone."""
    found = {each.pid for each in up.family(part)}
    return gone not in found and len(found) == (1 if part == SERVER else 2)


@pytest.mark.thorough
def test_parts_that_hang_are_killed_at_the_third_signal(tmp_path: Path, url: str) -> None:
    with Running(tmp_path, "up", APP, "--port", "0", "--url", url) as up:
        until(lambda: up.get("/api/workers").json()["workers"])
        family = up.family()
        for part in family:
            part.suspend()
        try:
            until(lambda: up.process.poll() is not None or up.process.send_signal(signal.SIGINT))
            _, alive = psutil.wait_procs(family, timeout=30)
        finally:
            for part in family:
                with suppress(psutil.NoSuchProcess):
                    part.kill()
        assert not alive


@pytest.mark.thorough
def test_when_the_parent_is_killed_its_children_stop_by_themselves(
    tmp_path: Path, url: str
) -> None:
    with Running(tmp_path, "up", APP, "--port", "0", "--url", url) as up:
        until(lambda: up.family(SERVER) and up.family(WORKER))
        family = up.family()
        up.process.kill()
        _, alive = psutil.wait_procs(family, timeout=30)
        assert not alive


@pytest.mark.thorough
def test_without_an_application_it_shows_the_store_and_fires_its_schedules(
    cli: Cli, tmp_path: Path, url: str
) -> None:
    cli("schedules", "add", "often", "greet", "--every", "1s", "--args", '{"name": "ada"}')
    with Running(tmp_path, "up", "--port", "0", "--url", url) as up:
        until(lambda: up.get("/api/jobs").json()["jobs"])
        assert not up.family(WORKER)
        assert "without workers" in up.out
        assert up.stop(signal.SIGINT) == 0


@pytest.mark.thorough
def test_it_stops_by_itself_after_a_while(penstock: Cli, url: str) -> None:
    answer = penstock("up", APP, "--port", "0", "--url", url, "--for", "200ms")
    assert answer.code == 0
    assert "died" not in answer.err  # what still starts is told to stop, and does not crash


@pytest.mark.thorough
def test_the_live_demonstration_has_something_to_see(cli: Cli, tmp_path: Path, url: str) -> None:
    """What `make run` starts: many types, progress, flows, schedules and a limit."""
    wanted = {"shop.customers", "demo.mail"}
    if LONG:
        wanted |= {"demo.thumbnail", "demo.montage", "demo.invoice"}
    with Running(tmp_path, "up", "penstock.demo.live:app", "--port", "0", "--url", url) as up:
        until(lambda: wanted <= types(up))
        assert up.get("/").status_code == 200
        assert up.stop(signal.SIGINT) == 0
    names = {entry["name"] for entry in cli("schedules", "ls", "--json").json}
    assert {"customers", "orders", "imports", "campaign", "nightly-report"} <= names
    assert "demo.text" in cli("limits", "ls").out


def types(up: Running) -> set[str]:
    found = up.get("/api/jobs", params={"status": "completed", "limit": 200}).json()["jobs"]
    return {job["type"] for job in found}


def test_an_application_without_types_is_one_sentence(cli: Cli) -> None:
    answer = cli("up", "tests.cli.shop:empty")
    assert answer.code == 2
    assert answer.says("register one with @app.job")


def test_a_wrong_url_is_one_sentence(penstock: Cli) -> None:
    answer = penstock("up", APP, "--port", "0", "--url", "nowhere")
    assert answer.code == 2
    assert answer.says("such as sqlite:///work.db")


def test_a_wrong_span_is_one_sentence(cli: Cli) -> None:
    answer = cli("up", "--for", "a while")
    assert answer.code == 2
    assert answer.says("such as 90s")


SHOP = """
from penstock import Penstock

app = Penstock()


@app.job
async def greet(name: str) -> str:
    return "{word} " + name
"""


@pytest.mark.parametrize("command", ["up", "worker"])
def test_with_reload_an_application_that_is_broken_from_the_start_is_waited_for(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    module = tmp_path / "broken_shop.py"
    module.write_text("def half(:\n")
    begun: list[list[str]] = []

    def begin(_: str, words: list[str]) -> None:
        begun.append(words)
        raise SystemExit(0)

    monkeypatch.setattr("os.execv", begin)
    monkeypatch.setattr("time.sleep", lambda _: module.write_text(SHOP.format(word="hello")))
    answer = cli(command, "broken_shop:app", "--reload")
    assert begun == [[sys.executable, *sys.orig_argv[1:]]]
    assert "SyntaxError" in answer.err
    assert "broken_shop:app cannot be loaded; waiting for a change" in answer.err


def test_ctrl_c_ends_the_wait_for_a_repair(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken_shop.py").write_text("def half(:\n")

    def interrupt(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("penstock.worker.reload.wait_for_repair", interrupt)
    assert cli("up", "broken_shop:app", "--reload").code == 0


@pytest.mark.thorough
def test_with_reload_a_change_of_the_code_is_at_work_at_once(tmp_path: Path, url: str) -> None:
    module = tmp_path / "reloading_shop.py"
    module.write_text(SHOP.format(word="hello"))
    words = ("up", "reloading_shop:app", "--port", "0", "--url", url, "--reload")

    def answered(word: str) -> bool:
        with suppress(httpx.TransportError):  # the server is being replaced, too
            job = greet(up)
            until(lambda: ended(up, job))
            return bool(up.get(f"/api/jobs/{job}").json()["result"] == f"{word} ada")
        return False

    with Running(tmp_path, *words, PYTHONPATH=f"{ENVIRONMENT['PYTHONPATH']}:{tmp_path}") as up:
        assert answered("hello")
        module.write_text(SHOP.format(word="good morning"))
        until(lambda: answered("good morning"))
        assert up.stop() == 0
    assert "server_died" not in up.err
    assert "worker_died" not in up.err
