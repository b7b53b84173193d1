"""The systems that are compared."""

import msgspec

SQLITE = "SQLite"
POSTGRES = "PostgreSQL"
REDIS = "Valkey"
BOTH = "PostgreSQL + Valkey"

PENSTOCK = "penstock"
NODE = "bullmq_node"


class System(msgspec.Struct, frozen=True, kw_only=True):
    """One job system on one store, and how much of it to measure.

    `settings` are the values of its one knob that are tried; the best is measured. `jobs` keep one
    of its processes busy for a second or two. Beside one that does not wait for the disk, as
    penstock does, nothing is judged that a disk decides.
    """

    name: str
    store: str
    jobs: int
    knob: str = "concurrency"
    settings: tuple[int, ...] = (20, 100)
    needs_setup: bool = False
    title: str = ""
    waits_for_disk: bool = True

    @property
    def label(self) -> str:
        """What readers know it by."""
        return self.title or self.name

    @property
    def key(self) -> str:
        """What its readings are called after."""
        return f"{self.label} ({self.store})"


PEERS = (
    System(name="huey", store=SQLITE, jobs=5_000, knob="threads", settings=(1, 4)),
    System(
        name="flexiq",
        store=SQLITE,
        jobs=400,
        knob="threads",
        settings=(4,),
        needs_setup=True,
        waits_for_disk=False,
    ),
    System(name="procrastinate", store=POSTGRES, jobs=800, settings=(10, 50), needs_setup=True),
    System(
        name="pgqueuer",
        store=POSTGRES,
        jobs=20_000,
        knob="batch size",
        settings=(500,),
        needs_setup=True,
    ),
    System(
        name="flexiq", store=POSTGRES, jobs=300, knob="threads", settings=(4,), needs_setup=True
    ),
    System(name="dramatiq", store=REDIS, jobs=5_000, knob="threads", settings=(8, 32)),
    System(name="taskiq", store=REDIS, jobs=3_500),
    System(name="saq", store=REDIS, jobs=3_000, settings=(10, 50)),
    System(name="arq", store=REDIS, jobs=3_000),
    System(name="streaq", store=REDIS, jobs=1_600),
    System(name="celery", store=REDIS, jobs=1_200, knob="threads", settings=(0, 4)),
    System(name="flexiq", store=REDIS, jobs=100, knob="threads", settings=(4,), needs_setup=True),
    System(name="rq", store=REDIS, jobs=500, knob="jobs at once", settings=(1,)),
    System(name="bullmq", store=REDIS, jobs=2_500),
    System(name=NODE, store=REDIS, jobs=20_000, title="BullMQ on Node"),
)

OURS = tuple(
    System(name=PENSTOCK, store=store, jobs=40_000, settings=(100,), needs_setup=True)
    for store in (SQLITE, POSTGRES, REDIS, BOTH)
)
