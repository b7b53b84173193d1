"""The proxy has exactly the fault that was asked for, on connections to real servers."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial

import psycopg
import pytest

from penstock.model.errors import InvalidOption
from proof.proxy import Proxy
from proof.servers.process import await_condition

SECONDS = 10.0
MOMENT = 0.2

Dial = Callable[[], socket.socket]


@pytest.fixture
def proxy(valkey_server_url: str) -> Iterator[Proxy]:
    with Proxy(valkey_server_url) as proxy:
        yield proxy


@pytest.fixture
def dial(proxy: Proxy) -> Iterator[Dial]:
    made: list[socket.socket] = []

    def dial() -> socket.socket:
        made.append(socket.create_connection(("127.0.0.1", proxy.port), SECONDS))
        return made[-1]

    yield dial
    for line in made:
        line.close()


@pytest.fixture
def to_postgres(postgres_url: str) -> Iterator[Proxy]:
    with psycopg.connect(postgres_url) as connection:
        connection.execute("CREATE TABLE things (thing integer)")
    with Proxy(postgres_url) as proxy:
        yield proxy


def _ping(line: socket.socket) -> bytes:
    line.sendall(b"PING\r\n")
    return line.recv(100)


def _is_silent(line: socket.socket) -> bool:
    line.settimeout(MOMENT)
    try:
        line.recv(100)
    except TimeoutError:
        return True
    finally:
        line.settimeout(SECONDS)
    return False


def _things(url: str) -> int:
    with psycopg.connect(url) as connection:
        row = connection.execute("SELECT count(*) FROM things").fetchone()
    assert row is not None
    return int(row[0])


def test_a_healthy_proxy_is_not_noticed(dial: Dial) -> None:
    assert _ping(dial()) == b"+PONG\r\n"


def test_what_the_server_says_before_it_hangs_up_arrives() -> None:
    farewell = bytes(5_000_000)

    def say() -> None:
        line, _ = server.accept()
        with line:
            line.sendall(farewell)

    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        speaker = threading.Thread(target=say)
        speaker.start()
        with (
            Proxy(f"127.0.0.1:{server.getsockname()[1]}") as proxy,
            closing(socket.create_connection(("127.0.0.1", proxy.port), SECONDS)) as line,
            line.makefile("rb") as answers,
        ):
            assert answers.read() == farewell
        speaker.join()


def test_a_url_keeps_all_but_its_address(proxy: Proxy) -> None:
    there = proxy.url_for("postgresql://me:secret@db.example:5432/work?schema=mail")
    assert there == f"postgresql://me:secret@127.0.0.1:{proxy.port}/work?schema=mail"
    assert proxy.url_for("redis://db.example/0") == f"redis://127.0.0.1:{proxy.port}/0"


def test_a_blackhole_keeps_connections_and_what_was_sent_arrives_when_it_heals(
    proxy: Proxy, dial: Dial
) -> None:
    before = dial()
    assert _ping(before) == b"+PONG\r\n"
    proxy.blackhole()
    after = dial()
    for line in (before, after):
        line.sendall(b"PING\r\n")
        assert _is_silent(line)
    proxy.heal()
    assert before.recv(100) == b"+PONG\r\n"
    assert after.recv(100) == b"+PONG\r\n"


def test_in_a_blackhole_the_server_does_not_see_a_client_leave(proxy: Proxy, dial: Dial) -> None:
    line = dial()
    _ping(line)
    proxy.blackhole()
    line.close()
    with pytest.raises(TimeoutError):
        await_condition(lambda: proxy.connections == 0, MOMENT)
    proxy.heal()
    await_condition(lambda: proxy.connections == 0, SECONDS)


@pytest.mark.parametrize("weather", [Proxy.heal, Proxy.blackhole])
def test_a_reset_cuts_every_connection_and_new_ones_work(
    proxy: Proxy, dial: Dial, weather: Callable[[Proxy], None]
) -> None:
    lines = [dial(), dial()]
    for line in lines:
        _ping(line)
    weather(proxy)
    proxy.reset()
    for line in lines:
        with pytest.raises(ConnectionResetError):
            line.recv(100)
    assert proxy.connections == 0
    proxy.heal()
    assert _ping(dial()) == b"+PONG\r\n"


def _seconds_of_ping(line: socket.socket) -> float:
    began = time.monotonic()
    _ping(line)
    return time.monotonic() - began


def test_a_delay_is_added_each_way(proxy: Proxy, dial: Dial) -> None:
    line = dial()
    _ping(line)
    proxy.delay(0.3)
    began = time.monotonic()
    _ping(line)
    assert time.monotonic() - began >= 0.6
    proxy.heal()
    assert min(_seconds_of_ping(line) for _ in range(5)) < 0.6  # of one that nothing else held up


def test_a_delay_is_latency_and_not_less_bandwidth(proxy: Proxy, dial: Dial) -> None:
    line = dial()
    proxy.delay(0.3)
    began = time.monotonic()
    line.sendall(b"*2\r\n$4\r\nECHO\r\n$2000000\r\n" + bytes(2_000_000) + b"\r\n")
    left = 2_000_012
    while left:
        left -= len(line.recv(left))
    assert time.monotonic() - began < 9.0  # a delay of each of some thirty parts


def test_the_next_answer_is_lost_though_the_request_was_served(proxy: Proxy, dial: Dial) -> None:
    line, other = dial(), dial()
    _ping(other)
    dropped = proxy.drop_next_answer()
    line.sendall(b"SET test-lost-answer 42\r\n")
    with pytest.raises(ConnectionResetError):
        line.recv(100)
    assert dropped.is_set()
    other.sendall(b"GET test-lost-answer\r\n")
    assert other.recv(100) == b"$2\r\n42\r\n"
    other.sendall(b"DEL test-lost-answer\r\n")
    assert other.recv(100) == b":1\r\n"
    assert _ping(dial()) == b"+PONG\r\n"


def test_a_commit_whose_answer_is_lost_is_a_commit(to_postgres: Proxy, postgres_url: str) -> None:
    dropped = to_postgres.drop_answer_after(partial(_mentions, b"COMMIT"))
    with closing(psycopg.connect(to_postgres.url)) as connection:
        connection.execute("INSERT INTO things VALUES (1)")
        assert not dropped.is_set()
        with pytest.raises(psycopg.OperationalError):
            connection.commit()
        assert connection.broken
    assert dropped.is_set()
    assert _things(postgres_url) == 1
    assert _things(to_postgres.url) == 1


def test_a_transaction_that_is_reset_before_its_commit_is_none(
    to_postgres: Proxy, postgres_url: str
) -> None:
    with closing(psycopg.connect(to_postgres.url)) as connection:
        connection.execute("INSERT INTO things VALUES (1)")
        to_postgres.reset()
        with pytest.raises(psycopg.OperationalError):
            connection.commit()
    assert _things(postgres_url) == 0


def test_what_is_sent_can_arrive_as_something_else(proxy: Proxy, dial: Dial) -> None:
    proxy.alter(lambda sent: sent.replace(b"PING", b"PONG"))
    assert _ping(dial()).startswith(b"-ERR unknown command 'PONG'")


def test_a_server_that_is_gone_is_a_cut_connection() -> None:
    with closing(socket.socket()) as nobody_listens:
        nobody_listens.bind(("127.0.0.1", 0))
        with (
            Proxy(f"127.0.0.1:{nobody_listens.getsockname()[1]}") as proxy,
            pytest.raises(ConnectionResetError),
            closing(socket.create_connection(("127.0.0.1", proxy.port), SECONDS)) as line,
        ):
            line.recv(100)


def test_a_closed_proxy_cuts_and_refuses(valkey_server_url: str) -> None:
    with Proxy(valkey_server_url) as proxy:
        line = socket.create_connection(("127.0.0.1", proxy.port), SECONDS)
        _ping(line)
    with closing(line), pytest.raises(ConnectionResetError):
        line.recv(100)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", proxy.port), SECONDS)


def test_a_target_without_a_port_is_refused() -> None:
    with pytest.raises(InvalidOption, match="a host and a port"):
        Proxy("unix:///run/valkey.sock")


def _mentions(word: bytes, sent: bytes) -> bool:
    return word in sent
