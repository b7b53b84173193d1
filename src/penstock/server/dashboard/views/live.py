"""The stream by which a page hears that it should ask for itself anew."""

from fastapi import Request
from starlette.responses import StreamingResponse

from penstock.server.dashboard.live import Live
from penstock.server.dashboard.route import page_router
from penstock.server.dashboard.visit import Reading

router = page_router()


@router.get("/live")
async def live(request: Request, _: Reading) -> StreamingResponse:
    """Says `changed` at most once a second."""
    listening: Live = request.app.state.live
    headers = {"X-Accel-Buffering": "no"}
    return StreamingResponse(listening.open(), headers=headers, media_type="text/event-stream")
