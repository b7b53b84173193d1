"""The API's documentation, where every call can be tried with the rights of who is logged in."""

from starlette.responses import Response

from penstock.server.dashboard.request import ReadVisit
from penstock.server.dashboard.route import page_router

router = page_router()


@router.get("/api")
async def reference(visit: ReadVisit) -> Response:
    """Show the API's own document, with what its calls send along to be taken for a page's own."""
    return await visit.page("api.html", "api", live=False, token=visit.caller.csrf or "")
