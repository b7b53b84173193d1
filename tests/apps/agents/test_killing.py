"""The harness itself: it finds the job that does not survive being killed, and only that."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from penstock import Context, Penstock
from penstock.apps.agents.worker import Worker, add
from tests.apps.agents.killing import Play, Setting, Stage, twice_and_killed

PARTS = ("first", "second", "third")


class CopyData(Struct, rename="camel", kw_only=True):
    """Where to."""

    file_name: str


class Copy(Worker[CopyData, int]):
    """Write parts to a file, one after the other."""

    name = "copy"

    async def process(self, data: CopyData, ctx: Context) -> int:
        done = ctx.checkpoint or 0
        folder = ctx.app.extensions.settings("agents").folder
        for number, part in enumerate(PARTS):
            if number < done:
                continue
            self.write(f"{folder}-{data.file_name}", part)
            await ctx.save_checkpoint(number + 1)
        return len(PARTS)

    def write(self, path: str, part: str) -> None:
        """Add a part that is not there yet."""
        with open(path, "a+") as file:
            file.seek(0)
            if part not in file.read():
                file.write(part)


class Forgetful(Copy):
    """Write parts whether or not they are there."""

    def write(self, path: str, part: str) -> None:
        """Add a part."""
        with open(path, "a") as file:
            file.write(part)


class Copying(Play):
    """Copy something that may be killed."""

    worker: type[Copy] = Copy

    def app(self, setting: Setting) -> Penstock:
        app = super().app(setting)
        add(app, self.worker, max_retries=0)
        return app

    async def enqueue(self, app: Penstock) -> None:
        await app.agents.enqueue("copy", {"fileName": "copy.txt"})

    async def state(self, app: Penstock) -> Any:
        return Path(f"{app.extensions.settings('agents').folder}-copy.txt").read_text()  # noqa: ASYNC240


class CopyingTwice(Copying):
    """The same by a job that does not look."""

    worker = Forgetful
    again = False


class CopyingAgain(Copying):
    """The same, where even a second job is one too many."""

    worker = Forgetful


@pytest.fixture(autouse=True)
def _same_class() -> Iterator[None]:
    """A class knows the last application it was added to."""
    yield
    Copy.job_type = Forgetful.job_type = None


@pytest.mark.thorough("postgres")
async def test_a_job_that_can_be_repeated_leaves_the_same_wherever_it_was_killed(
    stage: Stage,
) -> None:
    assert await twice_and_killed(stage, Copying()) == "firstsecondthird"


async def test_a_job_that_repeats_its_effect_when_it_is_resumed_is_found(stage: Stage) -> None:
    left = "killed at point [12] of 4, it left '(firstfirst|firstsecondsecond)"
    with pytest.raises(AssertionError, match=left):
        await twice_and_killed(stage, CopyingTwice())


async def test_a_second_job_that_repeats_the_effect_is_found(stage: Stage) -> None:
    with pytest.raises(AssertionError, match="a second job changed more"):
        await twice_and_killed(stage, CopyingAgain())
