"""Fault 4: the producer dies around its commit."""

import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from tests.faults.support.children import Child
from tests.faults.support.facts import figure, integrity, job_ids, query

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]


def test_no_acknowledged_job_is_lost_when_the_producer_dies_at_any_change_to_the_disk(
    tmp_path: Path,
) -> None:
    luck = Random(4)
    for _ in range(figure(short=6, full=200)):
        with produce(tmp_path, failpoint=luck.randrange(1, 120)) as child:
            assert child.wait() == 9
    check_acknowledged(tmp_path)


@pytest.mark.quick
def test_no_acknowledged_job_is_lost_when_the_producer_is_killed_at_any_time(
    tmp_path: Path,
) -> None:
    luck = Random(4)
    for _ in range(figure(short=4, full=200)):
        with produce(tmp_path) as child:
            threading.Event().wait(luck.uniform(0, 0.1))
            child.signal(signal.SIGKILL)
            assert child.wait() == -signal.SIGKILL
    check_acknowledged(tmp_path)


def produce(folder: Path, failpoint: int = 0) -> Child:
    child = Child("producer", folder / "work.db", folder / "acknowledged", failpoint)
    assert child.answer() == "ready"
    return child


def check_acknowledged(folder: Path) -> None:
    acknowledged = list(read_log(folder / "acknowledged"))
    path = folder / "work.db"
    assert len(acknowledged) > 10
    assert {job_id for job_id, _, _ in acknowledged} <= job_ids(path)
    assert integrity(path) == "ok"
    sizes = {batch: size for _, batch, size in acknowledged}
    stored = dict(query(path, "SELECT created_by, count(*) FROM jobs GROUP BY created_by"))
    assert {batch: stored[batch] for batch in sizes} == sizes


def read_log(path: Path) -> Iterator[tuple[str, str, int]]:
    for line in path.read_text().splitlines():
        job_id, batch, size = line.split()
        yield job_id, batch, int(size)
