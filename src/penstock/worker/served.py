"""Which types and queues a worker serves: what it or the settings say, and notices of alerts."""

from collections.abc import Sequence
from typing import Any

from penstock.client.app import Penstock
from penstock.client.job_type import JobType
from penstock.client.notices import QUEUE, notice_types
from penstock.model.errors import InvalidOption


def served_types(app: Penstock, names: Sequence[str] | None) -> dict[str, JobType[..., ..., Any]]:
    """The application's types, or those that were named; notices too, where they have a route."""
    own, built_in = app.types, notice_types(app)
    names = names if names is not None else app.settings.worker_types or None
    named = None if names is None else [name for name in names if name not in built_in]
    if not own and named != []:
        raise InvalidOption("app", "empty", "an application with at least one @app.job")
    if named is None:
        return own | built_in
    wanted = {name for given in named for name in app.find_type(given).names}
    return {name: type_ for name, type_ in own.items() if name in wanted} | built_in


def served_queues(app: Penstock, names: Sequence[str] | None) -> tuple[str, ...] | None:
    """The queues that were named, or all; that of notices is always among them."""
    names = names if names is not None else app.settings.worker_queues
    if not names:
        return None
    return tuple(dict.fromkeys((*names, QUEUE) if app.settings.alerts.routes else names))
