"""Metrics for Prometheus."""

from typing import Annotated

from fastapi import Header, Response

from penstock.server.api.router import api_router
from penstock.server.guard import MayReadAll
from penstock.server.prometheus.families import exposition
from penstock.server.state import Here

router = api_router("/metrics", "health")

TEXT = {"schema": {"type": "string"}}
FORMATS = ("text/plain", "application/openmetrics-text")


@router.get(
    "",
    operation_id="read_metrics",
    response_class=Response,
    responses={
        200: {
            "description": "All metrics, in the format that `Accept` asks for.",
            "content": dict.fromkeys(FORMATS, TEXT),
        }
    },
)
async def read_metrics(
    server: Here, _: MayReadAll, accept: Annotated[str, Header(max_length=1000)] = ""
) -> Response:
    """All metrics in the text format of Prometheus, or in OpenMetrics."""
    seen = server.observer
    text, content_type = await exposition(seen.scraper, seen.traffic, accept)
    return Response(text, headers={"Content-Type": content_type, "Cache-Control": "no-store"})
