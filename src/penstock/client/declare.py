"""What an application declares beside its job types, put into the store when a worker starts."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from penstock.client.job_type import JobType
from penstock.client.options import check_name
from penstock.client.schedules import check_template, template_job
from penstock.client.times import times_of
from penstock.model.errors import InvalidOption
from penstock.model.refused import ScheduleOver

if TYPE_CHECKING:
    from penstock.client.app import Penstock

T = TypeVar("T", bound="JobType[..., ..., Any]")


class Declaration(Protocol):
    """Something that should be in the store."""

    async def declare(self, app: "Penstock") -> None:
        """Put it there, unless an operator decided otherwise since."""
        ...


async def declare(app: "Penstock") -> None:
    """Put everything into the store that the application declares."""
    for declaration in list(app.declarations):
        await declaration.declare(app)


class DeclaredSchedule:
    """What `@app.scheduled(...)` says of a job type."""

    def __init__(
        self,
        type_: JobType[..., ..., Any],
        name: str | None,
        arguments: Mapping[str, Any] | None,
        times: Mapping[str, Any],
    ) -> None:
        if not isinstance(type_, JobType):
            raise InvalidOption(
                "handler", type_, "a job type: write @app.scheduled(...) above @app.job"
            )
        self.type = type_
        self.name = type_.name if name is None else name
        check_name("name", self.name)
        self._arguments = arguments
        self._times = times_of(times)

    async def declare(self, app: "Penstock") -> None:
        """Put the schedule into the store; one whose time is over is left out."""
        job = template_job(self.type, self._arguments)
        check_template(self.type, self.name, job, self._times)
        try:
            await app.schedules.put(self.name, job, self._times, by="declaration")
        except ScheduleOver as error:
            import structlog

            log = structlog.get_logger("penstock.client")
            log.info("schedule_over", schedule=self.name, reason=str(error))


def scheduled(
    app: "Penstock", name: str | None, arguments: Mapping[str, Any] | None, times: Mapping[str, Any]
) -> Callable[[T], T]:
    """The decorator that declares a schedule of the job type it stands above."""

    def declared(type_: T) -> T:
        _add(app, DeclaredSchedule(type_, name, arguments, times))
        return type_

    return declared


def _add(app: "Penstock", schedule: DeclaredSchedule) -> None:
    """Declare a schedule; a module that is loaded again replaces its own."""
    for known in [one for one in app.declarations if isinstance(one, DeclaredSchedule)]:
        if known.name == schedule.name:
            if known.type is schedule.type or known.type.name != schedule.type.name:
                raise InvalidOption("name", schedule.name, "one that no other schedule has")
            app.declarations.remove(known)
    app.declarations.append(schedule)
