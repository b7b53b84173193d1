"""Adding the dashboard to a server."""

from fastapi import FastAPI
from starlette.exceptions import HTTPException

from penstock.server.dashboard import assets
from penstock.server.dashboard.route import no_such_page
from penstock.server.dashboard.views import (
    access,
    alerts,
    audit,
    bulk,
    dead,
    enqueue,
    job,
    jobs,
    letter,
    live,
    login,
    overview,
    queues,
    schedule_form,
    schedules,
    workers,
)

VIEWS = (
    assets.router,
    live.router,
    overview.router,
    jobs.router,
    enqueue.router,
    bulk.router,
    job.router,
    dead.router,
    letter.router,
    schedules.router,
    schedule_form.router,
    queues.router,
    workers.router,
    alerts.router,
    audit.router,
    access.router,
    login.router,
)
"""The views; `jobs/new` and `jobs/bulk` stand before the page of a job."""


def install(api: FastAPI) -> None:
    """Add a page for addresses that are not there."""
    api.add_exception_handler(HTTPException, no_such_page)
