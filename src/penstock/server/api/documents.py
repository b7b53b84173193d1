"""Records of the store as documents of the API."""

from collections.abc import Sequence
from typing import Any

from penstock.client.documents import document
from penstock.model import explain as model
from penstock.model.job import Job as StoredJob
from penstock.server.api.models import Edge, Execution, Explanation, Job, LogLine, Reason
from penstock.store import contract


def job_documents(jobs: Sequence[StoredJob]) -> list[Job]:
    """Jobs as they stand."""
    return [Job.model_construct(**document(job)) for job in jobs]


def execution_documents(executions: Sequence[contract.Execution]) -> list[Execution]:
    """Executions, in the order given."""
    return [Execution.model_construct(**document(run)) for run in executions]


def log_documents(lines: Sequence[contract.LogLine]) -> list[LogLine]:
    """Log lines, in the order given."""
    return [LogLine.model_construct(**document(line)) for line in lines]


def edge_documents(edges: Sequence[contract.Dependency]) -> list[Edge]:
    """Edges, each in one piece."""
    return [_edge(each) for each in edges]


def explanation_document(found: model.Explanation) -> Explanation:
    """Where a job stands, and why."""
    opened: dict[str, Any] = document(found)
    opened["reasons"] = [Reason.model_construct(**document(each)) for each in found.reasons]
    return Explanation.model_construct(**opened)


def _edge(found: contract.Dependency) -> Edge:
    opened: dict[str, Any] = document(found)
    inner = document(found.edge)
    kept = ("parent_id", "kind", "condition", "argument", "on_failure")
    opened = {name: value for name, value in opened.items() if name != "edge"}
    return Edge.model_construct(**opened, **{name: inner[name] for name in kept})
