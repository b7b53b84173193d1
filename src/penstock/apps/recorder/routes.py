"""The addresses of the recorder's API and the pages of its dashboard, as data."""

from penstock.extension import Body, Page, Route

API = "penstock.apps.recorder.api"
PAGES = "penstock.apps.recorder.pages"
OTLP_LIMIT = 4 << 20
"""So many bytes of telemetry a request may hold, also when it is unpacked."""


def _reads(name: str, path: str, gives: str, query: str = "") -> Route:
    return Route(
        name=name,
        method="GET",
        path=path,
        run=f"{API}:{name}",
        query=f"{API}:{query}" if query else None,
        gives=f"{API}:{gives}",
    )


def _decides(name: str, action: str) -> Route:
    return Route(
        name=name,
        method="POST",
        path=f"recorder/learnings/{{learning_id}}/{action}",
        run=f"{API}:{name}",
        scope="operate",
        gives=f"{API}:LearningDocument",
    )


def _takes_otlp(name: str, signal: str) -> Route:
    return Route(
        name=name,
        method="POST",
        path=f"otlp/v1/{signal}",
        run=f"penstock.apps.recorder.telemetry:{name}",
        scope="record",
        body=Body.RAW,
        media="application/json, application/x-protobuf",
        limit=OTLP_LIMIT,
    )


ROUTES = (
    _takes_otlp("take_logs", "logs"),
    _takes_otlp("take_metrics", "metrics"),
    Route(
        name="receive_hook",
        method="POST",
        path="recorder/hooks/{platform}",
        run="penstock.apps.recorder.http_hook:receive_hook",
        scope="record",
        body=Body.RAW,
        limit=16 << 20,
    ),
    _reads("list_sessions", "recorder/sessions", "SessionList", "WantedSessions"),
    _reads("search_sessions", "recorder/search", "HitList", "WantedHits"),
    _reads("read_session_stats", "recorder/stats", "StatsDocument", "WantedStats"),
    _reads("get_session", "recorder/sessions/{session_id}", "SessionViewDocument"),
    Route(
        name="read_session_spans",
        method="GET",
        path="recorder/sessions/{session_id}/spans",
        run=f"{API}:read_session_spans",
    ),
    Route(
        name="export_session",
        method="GET",
        path="recorder/sessions/{session_id}/export",
        run=f"{API}:export_session",
        answers="application/x-ndjson",
    ),
    Route(
        name="delete_session",
        method="DELETE",
        path="recorder/sessions/{session_id}",
        run=f"{API}:delete_session",
        scope="admin",
        gives=f"{API}:ProofDocument",
    ),
    _reads("list_learnings", "recorder/learnings", "LearningList", "WantedLearnings"),
    _reads("get_learning", "recorder/learnings/{learning_id}", "LearningDocument"),
    Route(
        name="change_learning",
        method="PATCH",
        path="recorder/learnings/{learning_id}",
        run=f"{API}:change_learning",
        scope="operate",
        body=Body.JSON,
        takes=f"{API}:LearningChange",
        gives=f"{API}:LearningDocument",
    ),
    _decides("approve_learning", "approve"),
    _decides("reject_learning", "reject"),
    Route(
        name="revoke_learning",
        method="POST",
        path="recorder/learnings/{learning_id}/revoke",
        run=f"{API}:revoke_learning",
        scope="operate",
        body=Body.JSON,
        takes=f"{API}:MaybeRevocation",
        gives=f"{API}:LearningDocument",
    ),
    _reads("list_caught", "recorder/caught", "CaughtList", "WantedCaught"),
)

SHOWN = (
    Page(
        path="recorder",
        title="Sessions",
        template="sessions.html",
        show=f"{PAGES}:show_sessions",
    ),
    Page(
        path="recorder/sessions/{session_id}",
        template="session.html",
        show=f"{PAGES}:show_session",
    ),
    Page(
        path="recorder/sessions/{session_id}/delete",
        template="delete.html",
        show=f"{PAGES}:show_delete",
        act=f"{PAGES}:delete",
        scope="admin",
        acts="admin",
    ),
    Page(
        path="recorder/search",
        title="Search",
        template="search.html",
        show=f"{PAGES}:show_search",
    ),
    Page(
        path="recorder/metrics",
        title="Metrics",
        template="metrics.html",
        show=f"{PAGES}:show_metrics",
    ),
    Page(
        path="recorder/learnings",
        title="Learnings",
        template="learnings.html",
        show=f"{PAGES}:show_learnings",
        act=f"{PAGES}:decide",
        count=f"{PAGES}:count_proposed",
    ),
    Page(
        path="recorder/sanitiser",
        title="Sanitiser",
        template="report.html",
        show=f"{PAGES}:show_report",
    ),
)
