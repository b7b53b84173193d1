"""Answers to questions about jobs."""

from collections.abc import Iterable, Sequence
from typing import Any

from msgspec import DecodeError
from msgspec.json import Decoder

from penstock.model.job import Job, KeyScope
from penstock.model.states import Status
from penstock.store.contract import Execution, LogLine
from penstock.store.contract.reader import node_of
from penstock.store.relational.transaction import Transaction, readable

_COLUMNS = Job.__struct_fields__
_EXECUTION_COLUMNS = [name for name in Execution.__struct_fields__ if name != "node"]
_SCOPES = {scope.value: scope for scope in KeyScope}
_WORDS = Decoder(tuple[str, ...])


def get(tx: Transaction, ids: Sequence[str]) -> list[Job]:
    """The jobs that exist, in the order asked."""
    rows = tx.rows("get_jobs", (tx.listed(ids),))
    found = {row[0]: _job(tx, row) for row in rows}
    return [found[job_id] for job_id in ids if job_id in found]


def jobs(tx: Transaction, rows: Iterable[tuple[Any, ...]]) -> list[Job]:
    """Rows with all columns of a job."""
    return [_job(tx, row) for row in rows]


def waiting(tx: Transaction, after: str | None, limit: int) -> list[Job]:
    """A page of all jobs that have not ended and do not run."""
    return jobs(tx, tx.rows("waiting_jobs", {"after": after, "limit": limit}))


def executions(tx: Transaction, job_id: str) -> list[Execution]:
    """A job's executions, oldest first, the running one included."""
    ended = [_execution(row) for row in tx.rows("executions", (job_id,))]
    running = tx.row("running_execution", (job_id,))
    return ended if running is None else [*ended, Execution.running(*running, now=tx.now)]


def logs(tx: Transaction, job_id: str, limit: int) -> list[LogLine]:
    """The latest lines its handler kept, oldest first."""
    return [LogLine(*row) for row in tx.rows("logs", (job_id, limit))]


def _job(tx: Transaction, row: tuple[Any, ...]) -> Job:
    fields = dict(zip(_COLUMNS, row, strict=True))
    fields["status"] = Status(fields["status"])
    fields["payload"] = readable(fields["payload"])
    fields["key_scope"] = _SCOPES.get(fields["key_scope"])
    fields["tags"] = _tags(fields["tags"])
    if fields["lease_until"] is not None:
        fields["lease_until"] += tx.now - tx.monotonic
    return Job(**fields)


def _tags(stored: str | None) -> tuple[str, ...]:
    if not stored:
        return ()
    try:
        return _WORDS.decode(stored)
    except DecodeError:  # edited by hand: shown as it is, so that the job can still be listed
        return (stored,)


def _execution(row: tuple[Any, ...]) -> Execution:
    fields = dict(zip(_EXECUTION_COLUMNS, row, strict=True))
    return Execution(**fields, node=node_of(fields["worker"]))
