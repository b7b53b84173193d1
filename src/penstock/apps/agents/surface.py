"""What people have of the agent workers beside programs: commands, tiles and figures, as data."""

from penstock.extension import Command, Metric, Tile

OVERVIEW = "penstock.apps.agents.pages.overview"


def _commands(module: str, *names: str, **called: str) -> tuple[Command, ...]:
    """Commands of a module; those that are called otherwise than their functions by name."""
    place = f"penstock.apps.agents.{module}"
    plain = {name: name for name in names} | {
        name.replace("_", "-"): function for name, function in called.items()
    }
    return tuple(Command(name=name, run=f"{place}:{function}") for name, function in plain.items())


SUBJECT_COMMANDS = (
    *_commands(
        "memory_commands",
        "memories",
        "search",
        "memory",
        "remember",
        "edit",
        "forget",
        "merge",
        "link",
        "sessions",
        "session",
        "trajectories",
        "patterns",
        "pattern",
        "classifiers",
    ),
    *_commands(
        "webhook_commands",
        "webhooks",
        "webhook",
        "deliveries",
        "replay",
        add_webhook="add_webhook",
        change_webhook="change_webhook",
        delete_webhook="delete_webhook",
        rotate_secret="rotate_secret",
        test_webhook="try_webhook",
    ),
    *_commands(
        "maintenance_commands",
        "quotas",
        "exports",
        "export",
        "deletions",
        "erase",
        set_quota="set_quota",
        remove_quota="remove_quota",
    ),
)

TILES = (
    Tile(title="Memories", figure=f"{OVERVIEW}:count_memories", path="agents/memories"),
    Tile(title="Agent sessions", figure=f"{OVERVIEW}:count_active", path="agents/sessions"),
)

METRICS = (
    Metric(
        name="memories",
        help="Memories of agents that hold.",
        read=f"{OVERVIEW}:count_memories",
    ),
    Metric(
        name="sessions_active",
        help="Sessions of agents that are under way.",
        read=f"{OVERVIEW}:count_active",
    ),
    Metric(
        name="webhooks_disabled",
        help="Webhooks that were disabled because their receivers fail, or are gone.",
        read=f"{OVERVIEW}:count_disabled",
    ),
)
