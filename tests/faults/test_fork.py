"""Fault 31: a process forks while it has the store open."""

from pathlib import Path

import pytest

from tests.faults.support.children import Child
from tests.faults.support.facts import integrity, job_ids

pytestmark = pytest.mark.faults


@pytest.mark.quick
def test_a_forked_child_is_refused_every_use_and_its_parent_goes_on_undisturbed(
    tmp_path: Path,
) -> None:
    path = tmp_path / "work.db"
    with Child("forker", path) as parent:
        said = parent.answer()
        assert parent.wait() == 0

    child = said["child"]
    assert child.pop("exit") == "0"
    assert {use: answer for use, answer in child.items() if answer != "ForkedStore"} == {}
    assert len(child) == 20
    assert said["parent reads"] == 100
    assert job_ids(path) == set(said["ids"])
    assert integrity(path) == "ok"
