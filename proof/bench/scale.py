"""How much one run measures."""

import msgspec


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """Counts and durations of one run."""

    jobs: int
    repetitions: int
    singles: int
    pickups: int
    enqueuers: int
    producers: int
    backlog: int
    memory_mark: int
    history: int
    idle_seconds: float
    imports: int
    peer_jobs: int
    peer_trial_jobs: int
    parents: int
    links: int
    schedules: int
    rounds: int
    peer_divisor: int
    peer_pickups: int
    peer_singles: int
    requests: int
    request_rate: int
    drained_beside: int
    looks: int

    @classmethod
    def full(cls, jobs: int) -> "Scale":
        """What the targets are stated for; with 50,000 jobs it takes some minutes."""
        return cls(
            jobs=jobs,
            repetitions=5,
            singles=500,
            pickups=200,
            enqueuers=50,
            producers=40,
            backlog=2 * jobs,
            memory_mark=2 * jobs,
            history=20 * jobs,
            idle_seconds=10,
            imports=20,
            peer_jobs=max(100, min(10_000, jobs // 5)),
            peer_trial_jobs=max(100, min(2_000, jobs // 25)),
            parents=max(100, jobs // 5),
            links=max(50, jobs // 50),
            schedules=max(100, jobs // 5),
            rounds=3,
            peer_divisor=1,
            peer_pickups=100,
            peer_singles=1_000,
            requests=3_000,
            request_rate=200,
            drained_beside=12 * jobs,
            looks=50,
        )

    @classmethod
    def quick(cls, jobs: int) -> "Scale":
        """Every figure from few jobs: enough to see that the bench works, not to believe it."""
        return cls(
            jobs=jobs,
            repetitions=1,
            singles=min(100, jobs),
            pickups=min(30, jobs),
            enqueuers=50,
            producers=4,
            backlog=4 * jobs,
            memory_mark=2 * jobs,
            history=10 * jobs,
            idle_seconds=1,
            imports=3,
            peer_jobs=max(50, jobs // 5),
            peer_trial_jobs=max(50, jobs // 50),
            parents=max(50, jobs // 5),
            links=max(20, jobs // 50),
            schedules=max(50, jobs // 5),
            rounds=1,
            peer_divisor=10,
            peer_pickups=20,
            peer_singles=100,
            requests=30,
            request_rate=200,
            drained_beside=4 * jobs,
            looks=2,
        )
