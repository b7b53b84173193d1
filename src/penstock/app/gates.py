"""What extensions have to say about a job that wants in: gates refuse it, counters count it."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from penstock.extension import NotKnownYet, Way, asking
from penstock.model.errors import NotAdmitted
from penstock.model.job import Enqueued, Job, NewJob

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

T = TypeVar("T")


async def known(ask: Callable[[], T]) -> T:
    """The answer to a question that may have to be looked up first."""
    while True:
        try:
            return ask()
        except NotKnownYet as lacking:
            await lacking.look()


def there_already(jobs: Sequence[NewJob], answers: Sequence[Enqueued]) -> list[NewJob]:
    """The jobs that were not made, because one with their unique key is there."""
    return [job for job, answer in zip(jobs, answers, strict=True) if not answer.created]


class Gates:
    """The gates and counters of all extensions, asked at every way in."""

    def __init__(self, app: "Penstock") -> None:
        self._app = app

    def refusals(self, jobs: Sequence[NewJob | Job], way: Way) -> Iterator[NotAdmitted]:
        """What the gates of extensions have against jobs that want in."""
        for extension, gate in self._app.extensions.gates:
            for job in jobs:
                reason = gate(self._app, asking(job, way))
                if reason is not None:
                    yield NotAdmitted(job.type, extension.name, reason)
        if way is Way.REQUEUE:
            yield from self._used_up(jobs)

    def _used_up(self, jobs: Sequence[NewJob | Job]) -> Iterator[NotAdmitted]:
        for extension, counter in self._app.extensions.counters:
            for job in jobs:
                reason = counter.refusal(job)
                if reason is not None:
                    yield NotAdmitted(job.type, extension.name, reason)

    def ask(self, jobs: Sequence[NewJob | Job], way: Way) -> None:
        """Refuse jobs that a gate keeps out."""
        for refusal in self.refusals(jobs, way):
            raise refusal

    async def ask_again(self, ids: Sequence[str]) -> None:
        """Ask the gates about jobs that are to run again; they were counted when they came."""
        if self._app.extensions.gates or self._app.extensions.counters:
            jobs = await self._app.store.reader.get(ids)
            await known(lambda: self.ask(jobs, Way.REQUEUE))

    def let_in(self, jobs: Sequence[NewJob], way: Way) -> None:
        """Ask the gates, and have the counters count."""
        self.ask(jobs, way)
        self.take(jobs, way)

    def take(self, jobs: Sequence[NewJob], way: Way) -> None:
        """Have the counters of extensions count jobs, or refuse all of them."""
        counters = self._app.extensions.counters
        for place, (extension, counter) in enumerate(counters):
            try:
                reason = counter.take(jobs, way)
                if reason is not None:
                    raise NotAdmitted(jobs[0].type, extension.name, reason)
            except BaseException:
                for _, earlier in counters[:place]:
                    earlier.give_back(jobs)
                raise

    def give_back(self, jobs: Sequence[NewJob]) -> None:
        """Uncount jobs that did not come in."""
        for _, counter in self._app.extensions.counters if jobs else ():
            counter.give_back(jobs)
