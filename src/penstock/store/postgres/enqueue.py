"""Inserting many jobs at once: what they have in common is sent once, the rest as arrays."""

from collections.abc import Sequence
from typing import Any

from penstock.model.job import Enqueued, NewJob
from penstock.store.relational.enqueue import enqueue, enqueue_each, is_special, row_of
from penstock.store.relational.transaction import Transaction

MANY = 8
"""From so many jobs on; below, single inserts are as quick."""


def enqueue_all(tx: Transaction, jobs: Sequence[NewJob]) -> list[Enqueued]:
    """Insert jobs; a known id or a taken key answers with the job that has it."""
    if len(jobs) < MANY or any(map(is_special, jobs)):
        return enqueue(tx, jobs)
    tx.changed = True
    with tx.savepoint() as savepoint:
        if _insert(tx, jobs):
            return [Enqueued(job.id, True) for job in jobs]
        savepoint.undo()
    return enqueue_each(tx, jobs)


def _insert(tx: Transaction, jobs: Sequence[NewJob]) -> bool:
    """Insert jobs that are not there yet; whether none of them was."""
    inserted = sum(tx.run("insert_alike", row) for row in _alike(tx, jobs))
    if inserted < len(jobs):
        return False
    return tx.value("ended_already", ([job.id for job in jobs],)) is None


def _alike(tx: Transaction, jobs: Sequence[NewJob]) -> list[tuple[Any, ...]]:
    """One row of bindings for all jobs that differ in nothing but id and payload."""
    groups: dict[tuple[Any, ...], tuple[tuple[Any, ...], list[str], list[str]]] = {}
    for job in jobs:
        row = row_of(tx, job)
        shared = row[1:-1]
        # Tags travel as a list, which cannot be a key.
        kind = tuple(tuple(v) if isinstance(v, list) else v for v in shared) if job.tags else shared
        _, ids, payloads = groups.setdefault(kind, (shared, [], []))
        ids.append(row[0])
        payloads.append(row[-1])
    return [(*shared, ids, payloads) for shared, ids, payloads in groups.values()]
