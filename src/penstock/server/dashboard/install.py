"""Adding the dashboard to a server."""

from typing import TYPE_CHECKING

from fastapi import FastAPI

from penstock.server.dashboard import assets
from penstock.server.dashboard.live import Live
from penstock.server.dashboard.pages import Desk
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

if TYPE_CHECKING:
    from penstock.client.app import Penstock

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


def install(api: FastAPI, app: "Penstock") -> None:
    """Add the pages, and what they share."""
    api.state.desk = Desk(app)
    api.state.live = Live(app.store)
    for router in VIEWS:
        api.include_router(router)
