"""Adding the dashboard to a server."""

from fastapi import FastAPI
from starlette.exceptions import HTTPException

from penstock.server.dashboard import links
from penstock.server.dashboard.route import no_such_page
from penstock.server.dashboard.views import (
    access,
    api,
    audit,
    dead,
    enqueue,
    job,
    jobs,
    letter,
    overview,
    queues,
    schedule_form,
    schedules,
    workers,
)

VIEWS = (
    links.router,
    overview.router,
    jobs.router,
    enqueue.router,
    job.router,
    dead.router,
    letter.router,
    schedules.router,
    schedule_form.router,
    queues.router,
    workers.router,
    audit.router,
    access.router,
    api.router,
)
"""The views; `jobs/new` and `jobs/bulk` stand before the page of a job."""


def install(api: FastAPI) -> None:
    """Add a page for addresses that are not there."""
    api.add_exception_handler(HTTPException, no_such_page)
