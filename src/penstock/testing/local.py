"""Handlers that run here, wherever they would run otherwise."""

import copy
from typing import Any

from penstock.app.job_type import JobType


def in_this_process(type_: JobType[..., ..., Any]) -> JobType[..., ..., Any]:
    """The same type, run in this process whatever it asks for."""
    if type_.run_in != "process":
        return type_
    local = copy.copy(type_)
    local.run_in = "loop" if type_.is_async else "thread"
    return local
