"""Graphs of jobs with shared children."""

from random import Random

from penstock.model.dependency import Edge, EdgeKind, OnFailure
from penstock.model.ids import new_id
from penstock.model.job import NewJob

# Few edges pass an end on, or a deep graph would die out near its top.
POLICIES = [OnFailure.RUN] * 8 + [OnFailure.CANCEL, OnFailure.DEAD_LETTER]


def chance_edge(luck: Random, parent_id: str) -> Edge:
    """An edge of any kind and policy."""
    kind = luck.choice([EdgeKind.SUCCESS, EdgeKind.SUCCESS, EdgeKind.COMPLETION, EdgeKind.DATA])
    return Edge(
        parent_id=parent_id,
        kind=kind,
        argument=f"from_{parent_id}" if kind is EdgeKind.DATA else None,
        on_failure=luck.choice(POLICIES),
    )


def fan_in(luck: Random, layers: int, width: int) -> list[NewJob]:
    """Layers of jobs, each of which waits for several of the layer before."""
    jobs: list[NewJob] = []
    above: list[NewJob] = []
    for _ in range(layers):
        layer = [
            NewJob(
                id=new_id(),
                type="work",
                after=tuple(
                    chance_edge(luck, parent.id)
                    for parent in luck.sample(above, min(len(above), luck.randrange(1, 9)))
                ),
            )
            for _ in range(width)
        ]
        jobs += layer
        above = layer
    return jobs
