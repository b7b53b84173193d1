"""Turning a job that has just become a dead letter into a record for people."""

from collections.abc import Sequence
from typing import Any

from penstock.model.failure import Failure
from penstock.store.relational.transaction import Transaction


def keep_dead_letters(tx: Transaction, ids: Sequence[str], failure: Failure) -> None:
    """Snapshot jobs that ended alike, and their executions."""
    row: dict[str, Any] = {
        "ids": tx.listed(ids),
        "reason": str(failure.error_class),
        "error": failure.message,
        "code": failure.code,
        "fingerprint": failure.fingerprint,
        "now": tx.now,
    }
    tx.run("insert_dead_letter", row)


def release_keys(tx: Transaction, ids: list[str]) -> None:
    """Let go of the keys that a job holds only until it is done."""
    if ids and tx.value("any_key") is not None:
        tx.run("release_keys_at_end", (tx.listed(ids),))
