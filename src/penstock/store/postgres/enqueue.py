"""Inserting many jobs at once: what they have in common is sent once, the rest as arrays."""

from collections.abc import Sequence
from typing import Any

from msgspec.structs import astuple

from penstock.model.job import Enqueued, NewJob
from penstock.store.relational.enqueue import enqueue, enqueue_each, is_special, row_of
from penstock.store.relational.transaction import Transaction

MANY = 8
"""From so many jobs on; below, single inserts are as quick."""

SEPARATOR = "\x1f"
"""Between texts that travel as one; it is in no id, and JSON has another spelling for it."""


def enqueue_all(tx: Transaction, jobs: Sequence[NewJob]) -> list[Enqueued]:
    """Insert jobs; a known id or a taken key answers with the job that has it."""
    if len(jobs) < MANY or any(map(_is_special, jobs)):
        return enqueue(tx, jobs)
    tx.changed = True
    with tx.savepoint() as savepoint:
        if _insert(tx, jobs):
            return [Enqueued(job.id, True) for job in jobs]
        savepoint.undo()
    return enqueue_each(tx, jobs)


def _is_special(job: NewJob) -> bool:
    return is_special(job) or SEPARATOR in job.payload or SEPARATOR in job.id


def _insert(tx: Transaction, jobs: Sequence[NewJob]) -> bool:
    """Insert jobs that are not there yet; whether none of them was."""
    inserted = sum(tx.run("insert_alike", row) for row in _alike(tx, jobs))
    if inserted < len(jobs):
        return False
    return tx.value("ended_already", (SEPARATOR.join([job.id for job in jobs]),)) is None


def _alike(tx: Transaction, jobs: Sequence[NewJob]) -> list[tuple[Any, ...]]:
    """One row of bindings for all jobs that differ in nothing but id and payload."""
    groups: dict[tuple[Any, ...], list[NewJob]] = {}
    last, members = None, list[NewJob]()
    for job in jobs:
        _, type_, _, *rest = astuple(job)
        kind = (type_, *rest)
        if kind != last:
            last, members = kind, groups.setdefault(kind, [])
        members.append(job)
    return [_bindings(tx, members) for members in groups.values()]


def _bindings(tx: Transaction, jobs: Sequence[NewJob]) -> tuple[Any, ...]:
    shared = row_of(tx, jobs[0])[1:-1]
    ids = SEPARATOR.join([job.id for job in jobs])
    payloads = SEPARATOR.join([job.payload for job in jobs])
    return (*shared, ids, payloads)
