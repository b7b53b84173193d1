"""The server of an application, as an ASGI application that can be mounted under any path."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from fastapi import FastAPI

from penstock import __version__
from penstock.server import problems, requests
from penstock.server.api import (
    audit,
    autoscale,
    controls,
    dead,
    erasures,
    events,
    extensions,
    followers,
    health,
    jobs,
    metrics,
    openapi,
    payload_check,
    schedules,
    stats,
    tokens,
    workers,
)
from penstock.server.dashboard import install as dashboard
from penstock.server.dashboard.extensions import page_routes
from penstock.server.state import Server

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

ROUTERS = (
    jobs.router,
    events.router,
    payload_check.router,
    schedules.router,
    dead.router,
    controls.router,
    followers.router,
    workers.router,
    audit.router,
    erasures.router,
    tokens.router,
    stats.router,
    health.router,
    metrics.router,
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
            server.attach()
            server.streams.begin()
            await server.observer.uptime.start()
            try:
                yield
            finally:
                server.streams.end()
                await server.observer.uptime.stop()

    app.extensions.enable_installed()
    server = Server(app, trusts_callers=trusts_callers)
    # Were they included router by router, every server would work each of them out again.
    own = [route for router in (*ROUTERS, *dashboard.VIEWS) for route in router.routes]
    theirs = [*extensions.routes_of(app), *page_routes(app)]
    extensions.refuse_taken(own, theirs)
    api = FastAPI(
        title="Penstock",
        version=__version__,
        summary="Durable background work.",
        lifespan=opened,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        routes=[*own, *theirs],
    )
    api.state.server = server
    problems.install(api)
    openapi.install(api)
    api.add_middleware(requests.Envelope, api=api)
    api.add_middleware(requests.Measured, traffic=server.observer.traffic)
    api.add_middleware(requests.AccessLog, tells=app.settings.access_log)
    dashboard.install(api)
    return api
