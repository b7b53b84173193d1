"""The stream by which a page hears that it should ask for itself anew."""

from fastapi import Request
from starlette.responses import StreamingResponse

from penstock.server.dashboard.route import page_router
from penstock.server.dashboard.visit import ReadVisit
from penstock.server.presence import Presence

router = page_router()


@router.get("/live")
async def live(request: Request, visit: ReadVisit) -> StreamingResponse:
    """Says `changed` at most once a second."""
    server, caller = visit.server, visit.caller
    lasts = Presence(request, server, caller).lasts
    return server.streams.open(caller.actor, server.live.events(), lasts)
