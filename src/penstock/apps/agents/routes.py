"""The addresses of the agent workers' API and the pages of their dashboard, as data."""

from penstock.extension import Body, Page, Route

API = "penstock.apps.agents.api"
PAGES = "penstock.apps.agents.pages"
SESSION = "agents/sessions/{session_id}"
MEMORY = "agents/memories/{memory_id}"
PATTERN = "agents/patterns/{pattern_id}"
WEBHOOK = "agents/webhooks/{webhook_id}"
QUOTA = "agents/quotas/{tenant}/{measure}"
EXPORT = "agents/exports/{export_id}"


def _reads(module: str, name: str, path: str, gives: str, query: str = "") -> Route:
    return Route(
        name=name,
        method="GET",
        path=path,
        run=f"{API}.{module}:{name}",
        query=f"{API}.{module}:{query}" if query else None,
        gives=f"{API}.{module}:{gives}",
    )


def _does(
    module: str,
    name: str,
    path: str,
    gives: str,
    takes: str = "",
    *,
    scope: str = "operate",
    method: str = "POST",
    whole: bool = False,
) -> Route:
    return Route(
        name=name,
        method=method,
        path=path,
        run=f"{API}.{module}:{name}",
        scope=scope,
        whole=whole,
        body=Body.JSON if takes else Body.NONE,
        takes=f"{API}.{module}:{takes}" if takes else None,
        gives=f"{API}.{module}:{gives}",
    )


def _removes(
    module: str, name: str, path: str, *, query: str = "", scope: str = "operate"
) -> Route:
    return Route(
        name=name,
        method="DELETE",
        path=path,
        run=f"{API}.{module}:{name}",
        scope=scope,
        whole=name == "remove_quota",
        query=f"{API}.{module}:{query}" if query else None,
        gives=f"{API}.memories:Removed",
    )


MEMORIES = (
    _reads("memories", "list_memories", "agents/memories", "MemoryList", "WantedMemories"),
    _does(
        "memories", "add_memory", "agents/memories", "AddedDocument", "MemoryToAdd", scope="enqueue"
    ),
    _reads("memories", "search_memories", "agents/search", "RecalledList", "WantedRecall"),
    _does("memories", "merge_memories", "agents/memories/merge", "MemoryDocument", "Merging"),
    _reads("memories", "get_memory", MEMORY, "MemoryDocument"),
    _does("memories", "change_memory", MEMORY, "MemoryDocument", "MemoryChange", method="PATCH"),
    _removes("memories", "delete_memory", MEMORY),
    _reads("memories", "read_memory_graph", f"{MEMORY}/graph", "GraphDocument", "WantedGraph"),
    _does("memories", "link_memories", "agents/edges", "EdgeDocument", "NewEdge"),
    _removes("memories", "unlink_memories", "agents/edges", query="NamedEdge"),
)

LEARNING = (
    _reads(
        "learning",
        "list_agent_sessions",
        "agents/sessions",
        "AgentSessionList",
        "WantedAgentSessions",
    ),
    _does(
        "learning",
        "open_agent_session",
        "agents/sessions",
        "AgentSessionDocument",
        "SessionToOpen",
        scope="enqueue",
    ),
    _reads("learning", "get_agent_session", SESSION, "AgentSessionDocument"),
    _reads("learning", "list_agent_turns", f"{SESSION}/turns", "TurnList", "WantedTurns"),
    Route(
        name="add_agent_turns",
        method="POST",
        path=f"{SESSION}/turns",
        run=f"{API}.learning:add_agent_turns",
        scope="enqueue",
        body=Body.MANY,
        takes=f"{API}.learning:TurnToAdd",
        gives=f"{API}.learning:AgentSessionDocument",
    ),
    _does(
        "learning",
        "close_agent_session",
        f"{SESSION}/close",
        "AgentSessionDocument",
        scope="enqueue",
    ),
    _does("learning", "restore_agent_session", f"{SESSION}/restore", "AgentSessionDocument"),
    _reads(
        "learning",
        "list_trajectories",
        "agents/trajectories",
        "TrajectoryList",
        "WantedTrajectories",
    ),
    _reads(
        "learning", "get_trajectory", "agents/trajectories/{trajectory_id}", "TrajectoryDocument"
    ),
    _reads("learning", "list_patterns", "agents/patterns", "PatternList", "WantedPatterns"),
    _does("learning", "match_patterns", "agents/patterns/match", "MatchList", "Task", scope="read"),
    _reads("learning", "get_pattern", PATTERN, "PatternDocument"),
    _does("learning", "activate_pattern", f"{PATTERN}/activate", "PatternDocument"),
    _does("learning", "deactivate_pattern", f"{PATTERN}/deactivate", "PatternDocument"),
    _does("learning", "predict_verdict", "agents/predict", "Forecast", "Task", scope="read"),
    _reads(
        "learning", "list_classifiers", "agents/classifiers", "ClassifierList", "WantedClassifiers"
    ),
)

WEBHOOKS = (
    _reads("webhooks", "list_webhooks", "agents/webhooks", "WebhookList", "WantedWebhooks"),
    _does("webhooks", "add_webhook", "agents/webhooks", "NewWebhookDocument", "WebhookToAdd"),
    _reads("webhooks", "get_webhook", WEBHOOK, "WebhookDocument"),
    _does(
        "webhooks", "change_webhook", WEBHOOK, "WebhookDocument", "WebhookChange", method="PATCH"
    ),
    _removes("webhooks", "delete_webhook", WEBHOOK),
    _does("webhooks", "rotate_webhook", f"{WEBHOOK}/rotate", "Secret", "MaybeRotation"),
    _does("webhooks", "enable_webhook", f"{WEBHOOK}/enable", "WebhookDocument"),
    _does("webhooks", "disable_webhook", f"{WEBHOOK}/disable", "WebhookDocument"),
    _does("webhooks", "test_webhook", f"{WEBHOOK}/test", "Enqueued"),
    _does("webhooks", "send_to_webhook", f"{WEBHOOK}/send", "Enqueued", "Sending"),
    _reads(
        "webhooks", "list_deliveries", f"{WEBHOOK}/deliveries", "DeliveryList", "WantedDeliveries"
    ),
    _reads(
        "webhooks",
        "read_delivery_statistics",
        f"{WEBHOOK}/statistics",
        "StatisticsDocument",
        "WantedFigures",
    ),
    _does("webhooks", "replay_deliveries", f"{WEBHOOK}/replay", "Replayed", "ReplaySpan"),
    _does("webhooks", "replay_delivery", "agents/deliveries/{delivery_id}/replay", "Enqueued"),
    _does(
        "webhooks", "publish_topic", "agents/topics", "Published", "Publication", scope="enqueue"
    ),
)

MAINTENANCE = (
    _reads("maintenance", "list_quotas", "agents/quotas", "QuotaList", "WantedQuotas"),
    _reads("maintenance", "read_quota_usage", "agents/usage", "UsageList", "WantedUsage"),
    _does(
        "maintenance", "set_quota", QUOTA, "QuotaDocument", "QuotaToSet", method="PUT", whole=True
    ),
    _removes("maintenance", "remove_quota", QUOTA),
    _reads("maintenance", "list_exports", "agents/exports", "ExportList", "WantedExports"),
    _does(
        "maintenance", "start_export", "agents/exports", "Enqueued", "ExportToStart", scope="admin"
    ),
    _reads("maintenance", "get_export", EXPORT, "ExportDocument"),
    Route(
        name="download_export",
        method="GET",
        path=f"{EXPORT}/file",
        run=f"{API}.maintenance:download_export",
        scope="admin",
        answers="application/octet-stream",
    ),
    _removes("maintenance", "delete_export", EXPORT, scope="admin"),
    _reads("maintenance", "list_deletions", "agents/deletions", "DeletionList", "WantedDeletions"),
    _does(
        "maintenance",
        "start_deletion",
        "agents/deletions",
        "DeletionBegun",
        "DeletionToStart",
        scope="admin",
    ),
    _does(
        "maintenance",
        "verify_certificate",
        "agents/deletions/verify",
        "Verification",
        "CertificateToVerify",
        scope="read",
    ),
    _reads("maintenance", "get_deletion", "agents/deletions/{deletion_id}", "DeletionDocument"),
)

ROUTES = (*MEMORIES, *LEARNING, *WEBHOOKS, *MAINTENANCE)

SHOWN = (
    Page(
        path="agents/memories",
        title="Memories",
        template="memories.html",
        show=f"{PAGES}.memories:show_memories",
        act=f"{PAGES}.memories:change",
    ),
    Page(path=MEMORY, template="memory.html", show=f"{PAGES}.memories:show_memory"),
    Page(
        path=f"{MEMORY}/delete",
        template="forget.html",
        show=f"{PAGES}.memories:show_delete",
        act=f"{PAGES}.memories:delete",
        scope="operate",
    ),
    Page(
        path="agents/sessions",
        title="Agent sessions",
        template="sessions.html",
        show=f"{PAGES}.learning:show_sessions",
    ),
    Page(path=SESSION, template="session.html", show=f"{PAGES}.learning:show_session"),
    Page(
        path="agents/patterns",
        title="Patterns",
        template="patterns.html",
        show=f"{PAGES}.learning:show_patterns",
        act=f"{PAGES}.learning:switch_pattern",
    ),
    Page(
        path="agents/webhooks",
        title="Webhooks",
        template="webhooks.html",
        show=f"{PAGES}.webhooks:show_webhooks",
        act=f"{PAGES}.webhooks:add_webhook",
        count=f"{PAGES}.webhooks:count_disabled",
        bad=True,
    ),
    Page(
        path=WEBHOOK,
        template="webhook.html",
        show=f"{PAGES}.webhooks:show_webhook",
        act=f"{PAGES}.webhooks:change_webhook",
    ),
    Page(
        path=f"{WEBHOOK}/delete",
        template="webhook_delete.html",
        show=f"{PAGES}.webhooks:show_delete",
        act=f"{PAGES}.webhooks:delete",
        scope="operate",
    ),
    Page(
        path="agents/quotas",
        title="Quotas",
        template="quotas.html",
        show=f"{PAGES}.maintenance:show_quotas",
        act=f"{PAGES}.maintenance:change_quota",
        count=f"{PAGES}.maintenance:count_exceeded",
        bad=True,
    ),
    Page(
        path="agents/exports",
        title="Exports",
        template="exports.html",
        show=f"{PAGES}.maintenance:show_exports",
        act=f"{PAGES}.maintenance:start",
        acts="admin",
    ),
    Page(
        path="agents/erase",
        template="erase.html",
        show=f"{PAGES}.maintenance:show_erase",
        act=f"{PAGES}.maintenance:erase",
        scope="admin",
        acts="admin",
    ),
)
