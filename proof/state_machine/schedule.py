"""The rules about schedules: whoever looks and fires, and however late, a tick has one job."""

from collections import Counter

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule
from msgspec.structs import replace

from penstock.model.schedule import Misfire, Schedule, ScheduleKind, due_ticks, next_tick, tick_jobs
from proof.state_machine.ground import Draw, Ground
from proof.state_machine.schedules import Look, ScheduleModel
from proof.state_machine.strategies import TYPES

NAMES = ("hourly", "nightly")
REMEMBERED = 6

put_schedules = st.builds(
    Schedule,
    id=st.just(""),
    name=st.sampled_from(NAMES),
    type=st.sampled_from(TYPES),
    kind=st.just(ScheduleKind.INTERVAL),
    interval_ms=st.sampled_from((1_000, 5_000)),
    misfire=st.sampled_from(Misfire),
    enabled=st.sampled_from((True, True, False)),
    max_runs=st.sampled_from((None, None, 3)),
)


class ScheduleMachine(Ground[ScheduleModel]):
    """Several processes that look at schedules, and act on what they saw, sooner or later."""

    def __init__(self) -> None:
        super().__init__()
        self._looks: list[Look] = []
        self._revisions: dict[str, tuple[int, int]] = {}

    def _model(self) -> ScheduleModel:
        return ScheduleModel()

    @initialize(schedule=put_schedules)
    def begin(self, schedule: Schedule) -> None:
        """There is a schedule from the beginning."""
        self.put(schedule, 0)

    @rule(schedule=put_schedules, back_ms=st.sampled_from((0, 0, 3_000)))
    def put(self, schedule: Schedule, back_ms: int) -> None:
        """Somebody declares a schedule, perhaps again and with a time that has been."""
        job_id = f"{next(self._ids):026d}"
        next_run_at = next_tick(schedule, self._now - back_ms)
        named = replace(schedule, id=job_id, next_run_at=next_run_at)
        self.model.put(named)
        stored = self._do(self.store.schedules.put(named))
        assert stored.id == self.model.schedules[schedule.name].id

    @rule(name=st.sampled_from(NAMES))
    def remove(self, name: str) -> None:
        """Somebody deletes a schedule."""
        assert self._do(self.store.schedules.remove(name)) == self.model.remove(name)
        self._revisions.pop(name, None)

    @rule(name=st.sampled_from(NAMES))
    def pause(self, name: str) -> None:
        """An operator pauses a schedule."""
        assert self._do(self.store.schedules.pause(name)) == self.model.pause(name)

    @rule()
    def look_at_all(self) -> None:
        """A process sees all schedules, and acts on them later."""
        for schedule in self._do(self.store.schedules.known()):
            self._remember(schedule)

    @rule(data=st.data())
    @precondition(lambda self: self._looks)
    def resume(self, data: Draw) -> None:
        """An operator resumes a schedule as it was seen once."""
        look = data.draw(st.sampled_from(self._looks))
        next_run_at = next_tick(look.schedule, self._now)
        answer = self._do(self.store.schedules.resume(look.schedule, next_run_at))
        assert answer == self.model.resume(look, next_run_at)

    @rule(twice=st.booleans())
    def fire_what_is_due(self, twice: bool) -> None:
        """A process finds what is due and fires it, perhaps at the same moment as another."""
        due, upcoming = self._do(self.store.schedules.due())
        assert {schedule.name for schedule in due} == self.model.due(self._now)
        assert upcoming is None or upcoming > 0
        looks = [self._remember(schedule) for schedule in due]
        for look in looks * (1 + twice):
            self._fire(look)

    @rule(data=st.data())
    @precondition(lambda self: self._looks)
    def fire_late(self, data: Draw) -> None:
        """A process that was frozen fires what it had seen before."""
        self._fire(data.draw(st.sampled_from(self._looks)))

    @invariant()
    def every_schedule_is_as_it_should_be(self) -> None:
        """What is kept is what the model says; a revision grows with each change, and only then."""
        found = {schedule.name: schedule for schedule in self._do(self.store.schedules.known())}
        assert found.keys() == self.model.schedules.keys()
        for name, expected in self.model.schedules.items():
            seen = found[name]
            plain = replace(seen, created_at=0, updated_at=0, revision=0)
            assert plain == expected, name
            version = self.model.versions[name]
            before = self._revisions.get(name)
            assert before is None or (seen.revision > before[0]) == (version > before[1]), name
            self._revisions[name] = (seen.revision, version)

    @invariant()
    def every_tick_has_one_job(self) -> None:
        """However often it was fired."""
        jobs = (seen.job for seen in self._picture.values())
        ticks = Counter((job.schedule_id, job.scheduled_at) for job in jobs)
        assert all(number == 1 for number in ticks.values()), ticks

    def _remember(self, schedule: Schedule) -> Look:
        plain = replace(schedule, created_at=0, updated_at=0)
        look = Look(plain, self.model.versions[schedule.name])
        self._looks = [*self._looks, look][-REMEMBERED:]
        return look

    def _fire(self, look: Look) -> None:
        ticks, upcoming = due_ticks(look.schedule, self._now)
        jobs = tick_jobs(look.schedule, ticks)
        last = ticks[-1] if ticks else None
        call = self.store.schedules.fire(look.schedule, jobs, upcoming, last_run_at=last)
        assert self._do(call) == self.model.fire(look, jobs, upcoming, last, self._now)
