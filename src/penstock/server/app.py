"""The server of an application, as an ASGI application that can be mounted under any path."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fastapi import FastAPI

from penstock import __version__
from penstock.server import observe, problems
from penstock.server.api import (
    alerts,
    audit,
    autoscale,
    bulk,
    controls,
    dead,
    envelope,
    events,
    health,
    jobs,
    metrics,
    openapi,
    schedules,
    stats,
    tokens,
    workers,
)
from penstock.server.dashboard import install as dashboard
from penstock.server.state import Server

if TYPE_CHECKING:
    from penstock.client.app import Penstock

ROUTERS = (
    bulk.router,
    events.router,
    jobs.router,
    schedules.router,
    dead.router,
    controls.router,
    workers.router,
    audit.router,
    tokens.router,
    stats.router,
    health.router,
    metrics.router,
    alerts.router,
    autoscale.router,
)


def create_server(app: "Penstock", *, trusts_callers: bool = False) -> FastAPI:
    """An ASGI application for an application: `create_server(app)`.

    `trusts_callers` is for a server that only this machine can reach: while there is no token and
    no user, whoever asks may do everything.
    """

    @asynccontextmanager
    async def opened(_: FastAPI) -> AsyncGenerator[None]:
        async with app:
            await observer.start()
            try:
                yield
            finally:
                await observer.stop()
                api.state.live.close()

    api = FastAPI(
        title="Penstock",
        version=__version__,
        summary="Durable background work.",
        lifespan=opened,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
    )
    api.state.server = Server(app, trusts_callers=trusts_callers)
    api.state.streams = events.Streams()
    problems.install(api)
    openapi.install(api)
    api.add_middleware(envelope.Envelope, api=api, limit=app.settings.request_limit)
    observer = observe.install(api, app)
    for router in ROUTERS:
        api.include_router(router)
    dashboard.install(api, app)
    return api
