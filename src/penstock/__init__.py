"""Durable background work for Python: jobs that survive anything.

Names are loaded when first used, so that `import penstock` costs a hook almost nothing.
"""

TYPE_CHECKING = False  # not from typing, whose import would be most of this module's cost

if TYPE_CHECKING:
    from typing import Any

    from penstock.app.after import after
    from penstock.app.arguments import hashed_key, inject
    from penstock.app.blueprint import Blueprint
    from penstock.app.context import Context
    from penstock.app.flow import Chain, FlowHandle, Group, chain, group
    from penstock.app.handle import JobHandle
    from penstock.app.job_type import JobType, Prepared
    from penstock.app.penstock import Penstock
    from penstock.config import Settings, load_settings
    from penstock.model.errors import (
        CanariesUnproven,
        JobCancelled,
        JobFailed,
        PenstockError,
        QueueFull,
        ResultTimeout,
    )
    from penstock.model.job import Job, KeyScope
    from penstock.model.not_found import JobNotFound
    from penstock.model.outcome import Cancel, Dead, Retry, Snooze
    from penstock.model.retry import ErrorClass
    from penstock.model.states import Status
    from penstock.remote.connect import connect
    from penstock.worker.worker import Worker

__version__ = "0.1.0"

_HOME = {
    "after": "app.after",
    "Blueprint": "app.blueprint",
    "Penstock": "app.penstock",
    "hashed_key": "app.arguments",
    "Context": "app.context",
    "Chain": "app.flow",
    "Group": "app.flow",
    "chain": "app.flow",
    "group": "app.flow",
    "FlowHandle": "app.flow",
    "JobHandle": "app.handle",
    "inject": "app.arguments",
    "JobType": "app.job_type",
    "Prepared": "app.job_type",
    "connect": "remote.connect",
    "Settings": "config",
    "load_settings": "config",
    "JobCancelled": "model.errors",
    "JobFailed": "model.errors",
    "JobNotFound": "model.not_found",
    "PenstockError": "model.errors",
    "ResultTimeout": "model.errors",
    "Job": "model.job",
    "KeyScope": "model.job",
    "Cancel": "model.outcome",
    "Dead": "model.outcome",
    "Retry": "model.outcome",
    "Snooze": "model.outcome",
    "CanariesUnproven": "model.errors",
    "QueueFull": "model.errors",
    "ErrorClass": "model.retry",
    "Status": "model.states",
    "Worker": "worker.worker",
}

__all__ = [
    "Blueprint",
    "CanariesUnproven",
    "Cancel",
    "Chain",
    "Context",
    "Dead",
    "ErrorClass",
    "FlowHandle",
    "Group",
    "Job",
    "JobCancelled",
    "JobFailed",
    "JobHandle",
    "JobNotFound",
    "JobType",
    "KeyScope",
    "Penstock",
    "PenstockError",
    "Prepared",
    "QueueFull",
    "ResultTimeout",
    "Retry",
    "Settings",
    "Snooze",
    "Status",
    "Worker",
    "__version__",
    "after",
    "chain",
    "connect",
    "group",
    "hashed_key",
    "inject",
    "load_settings",
]


def __getattr__(name: str) -> "Any":
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'penstock' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"penstock.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
