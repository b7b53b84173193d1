"""A part of a run."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from proof.bench.readings import Readings
from proof.bench.scale import Scale

Step = Callable[[], None]


class Stage(msgspec.Struct, frozen=True):
    """A title for the progress bar, and what to do."""

    title: str
    steps: Sequence[Step]


class Bench(msgspec.Struct, frozen=True):
    """What every stage works with."""

    scale: Scale
    directory: Path
    readings: Readings

    @property
    def history_file(self) -> Path:
        """The file that the memory stage fills with completed jobs."""
        return self.directory / "history.db"

    @property
    def step_file(self) -> Path:
        """The file of the step under way."""
        return self.directory / "step.db"

    @contextmanager
    def fresh_file(self) -> Generator[Path, None, None]:
        """A database file for one step."""
        try:
            yield self.step_file
        finally:
            for left in self.directory.glob("step.*"):
                left.unlink()
