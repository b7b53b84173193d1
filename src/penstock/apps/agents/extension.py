"""The agent workers as one object; everything that takes time to load stands as a text."""

from typing import Any

from msgspec import Struct

from penstock.apps.agents.routes import ROUTES, SHOWN
from penstock.apps.agents.surface import METRICS, SUBJECT_COMMANDS, TILES
from penstock.extension import (
    Command,
    Extension,
    Follower,
    Measure,
    Measured,
    Metric,
    Pass,
    Rule,
    Severity,
    Table,
    Tables,
)


class EmbedderSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[penstock.agents.embedder]`: who turns texts into vectors.

    `provider` is `wordllama`, whose weights are in its wheel, or the `module:name` of something
    that is called with `settings` and has what `vectors.embedder.Embedder` asks for.
    """

    provider: str = "wordllama"
    settings: dict[str, Any] = {}


class VectorSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[penstock.agents.vectors]`: where vectors are searched.

    `provider` is `usearch`, `pgvector`, or a `module:name`; empty, it is pgvector where the tables
    are in a PostgreSQL that has it, and usearch elsewhere. The last three are those of its HNSW
    graph. Under `least_recall`, measured against an exact search, an index is built anew.
    """

    provider: str = ""
    settings: dict[str, Any] = {}
    m: int = 32
    ef_construction: int = 200
    ef_search: int = 100
    least_recall: float = 0.95


class TargetSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[penstock.agents.targets.NAME]`: rows that learn the id of their vector.

    `embedding-batch` writes it into `column` of the row whose `id` is the item's source. The table
    is one of an installed extension, or one that `tables_of_mine` lists. With `tenant`, only rows
    of the job's tenant are written.
    """

    table: str
    id: str = "id"
    column: str = "embedding_id"
    tenant: str = ""


class ModelSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[penstock.agents.model]`: which model writes summaries, if any.

    `provider` is empty (texts are summarised here, by extraction), `anthropic`, or a `module:name`.
    `key` says where the key is: `env:NAME`, `file:PATH` (0600) or `keyring:SERVICE/NAME`.
    """

    provider: str = ""
    settings: dict[str, Any] = {}
    name: str = "claude-haiku-4-5"
    key: str = "env:ANTHROPIC_API_KEY"
    base_url: str = "https://api.anthropic.com"
    timeout: float = 30
    input_price: float = 1.0
    """Dollars for a million tokens that go in, and, below, for as many that come out."""
    output_price: float = 5.0


class LearningSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[penstock.agents.learning]`: from which sessions is learned.

    With `automatic`, a session that is closed or has expired is looked through at once; without
    it, when somebody enqueues `trajectory-process`. With `recorder`, the sessions of coding
    assistants that the recorder has recorded are learned from as well.
    """

    automatic: bool = True
    recorder: bool = False


class NamedSecret(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A secret that webhooks of one tenant may name: `key` is its place, such as `env:NAME`."""

    key: str
    tenant: str = ""


class WebhookSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[penstock.agents.webhooks]`: how webhooks are delivered.

    `key` is the place of the key that secrets are derived from (`env:NAME`, `file:PATH` or
    `keyring:SERVICE/NAME`); without it, it is a file in the folder. `allow` are private networks
    that webhooks may go to, and `certificates` is a file with certificates that are trusted as
    well. Deliveries are kept for `keep_days`. `jobs` and `events` say whether these have topics.
    """

    key: str = ""
    allow: tuple[str, ...] = ()
    certificates: str = ""
    timeout: float = 10.0
    keep_days: int = 30
    jobs: bool = True
    events: bool = True
    secrets: dict[str, NamedSecret] = {}


class SlackConnection(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A Slack workspace that jobs of one tenant may read: `token` is its place, `env:NAME`."""

    token: str
    tenant: str = ""


class SlackSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[penstock.agents.slack]`: which Slack workspaces are read, by the name that jobs give."""

    base_url: str = "https://slack.com/api"
    timeout: float = 30.0
    page: int = 200
    connections: dict[str, SlackConnection] = {}


class AgentsSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[penstock.agents]` in TOML, or `PENSTOCK_AGENTS__FOLDER`.

    `folder` is for what is kept in files: vector indexes, archived sessions, exports. Without it
    they are beside the SQLite file, in `NAME.agents`; on a server it has to be named.
    `former_embedder` is the one that vectors are of until `embedding-reindex` has run.
    With `schedules = false` none of the default schedules is declared.
    """

    folder: str = ""
    schedules: bool = True
    embedder: EmbedderSettings = EmbedderSettings()
    former_embedder: EmbedderSettings | None = None
    vectors: VectorSettings = VectorSettings()
    model: ModelSettings = ModelSettings()
    learning: LearningSettings = LearningSettings()
    webhooks: WebhookSettings = WebhookSettings()
    slack: SlackSettings = SlackSettings()
    targets: dict[str, TargetSettings] = {}
    tables_of_mine: tuple[str, ...] = ()


TABLES = Tables(
    extension="agents",
    package="penstock.apps.agents",
    functions=("agents_index_near",),
    tables=(
        Table("agents_memories", key=("id",), tenant="tenant_id", person="user_id"),
        Table(
            "agents_edges",
            key=("source", "target", "edge_type"),
            tenant="tenant_id",
            person="user_id",
        ),
        Table("agents_halved", key=("job_id", "memory_id"), tenant="tenant_id", person="user_id"),
        Table(
            "agents_vectors",
            key=("namespace", "tenant_id", "model", "id"),
            tenant="tenant_id",
            person="user_id",
            derived=("embedding",),
        ),
        Table("agents_indexes", key=("namespace", "tenant_id"), tenant="tenant_id"),
        Table("agents_sessions", key=("id",), tenant="tenant_id", person="user_id"),
        Table("agents_turns", key=("session_id", "n"), tenant="tenant_id", person="user_id"),
        Table("agents_trajectories", key=("id",), tenant="tenant_id", person="user_id"),
        Table("agents_patterns", key=("id",), tenant="tenant_id"),
        Table("agents_classifiers", key=("id",), tenant="tenant_id"),
        Table(
            "agents_archives",
            key=("id",),
            tenant="tenant_id",
            files="of archived sessions (agents.folder)",
        ),
        Table("agents_webhooks", key=("id",), tenant="tenant_id", person="owner"),
        Table("agents_subscriptions", key=("webhook_id", "topic"), tenant="tenant_id"),
        Table("agents_webhook_deliveries", key=("id",), tenant="tenant_id", person="person"),
        Table(
            "agents_slack_channels",
            key=("tenant_id", "connection", "channel"),
            tenant="tenant_id",
        ),
        Table("agents_quotas", key=("tenant_id", "measure"), tenant="tenant_id"),
        Table("agents_usage", key=("tenant_id", "measure", "period", "slot"), tenant="tenant_id"),
        Table("agents_standings", key=("tenant_id", "measure"), tenant="tenant_id"),
        Table("agents_reservations", key=("id",), tenant="tenant_id"),
        Table("agents_exports", key=("id",), tenant="tenant_id", person="user_id"),
        Table("agents_deletions", key=("id",), stays=True),
    ),
)

COMMANDS = "penstock.apps.agents.commands"
WEBHOOKS = "penstock.apps.agents.webhooks"
COUNTING = "penstock.apps.agents.maintenance.counting"
HEALTH = "penstock.apps.agents.maintenance.health"


agents = Extension(
    name="agents",
    title="Agents",
    needs="agents",
    help="Memory, embeddings, learning, webhooks and maintenance of an agent platform.",
    settings=AgentsSettings,
    tables=TABLES,
    namespace="penstock.apps.agents.namespace:Agents",
    on_remote="penstock.apps.agents.remote:RemoteAgents",
    blueprint="penstock.apps.agents.jobs:jobs",
    commands=(
        Command(name="ls", run=f"{COMMANDS}:ls", opens=False),
        Command(name="describe", run=f"{COMMANDS}:describe", opens=False),
        Command(name="run", run=f"{COMMANDS}:run", writes=True),
        Command(name="reschedule", run=f"{COMMANDS}:reschedule", writes=True),
        *SUBJECT_COMMANDS,
    ),
    routes=ROUTES,
    templates="penstock.apps.agents",
    pages=SHOWN,
    tiles=TILES,
    erase="penstock.apps.agents.maintenance.erase:erase_whose",
    counter=f"{COUNTING}:JobCounter",
    adds={
        "events.counter": f"{COUNTING}:EventCounter",
        "events.consumers": (
            "penstock.apps.agents.learning.recorded:make_consumer",
            f"{WEBHOOKS}.topics:make_consumer",
        ),
    },
    followers=(
        Follower(
            name="webhooks",
            tell=f"{WEBHOOKS}.topics:tell_of_jobs",
            statuses=("cancelled", "completed", "dead_letter", "failed"),
            wanted=f"{WEBHOOKS}.upkeep:tells_of_jobs",
        ),
    ),
    passes=(Pass(name="prune_deliveries", every=3_600.0, run=f"{WEBHOOKS}.upkeep:prune"),),
    readings=(
        Measured(
            name="disabled_webhooks",
            measure=Measure("webhooks that were disabled because they fail", "webhooks"),
            read=f"{WEBHOOKS}.upkeep:disabled",
            page="agents/webhooks",
        ),
        Measured(
            name="quotas_used_up",
            measure=Measure("quotas of tenants that are used up", "quotas"),
            read=f"{HEALTH}:used_up",
            page="agents/quotas",
        ),
        Measured(
            name="quotas_nearly_used_up",
            measure=Measure("quotas of tenants that are nearly used up", "quotas"),
            read=f"{HEALTH}:nearly_used_up",
            page="agents/quotas",
        ),
    ),
    rules=(
        Rule(
            name="webhook_disabled",
            metric="disabled_webhooks",
            threshold=0,
            severity=Severity.WARNING,
            action="Correct the receiver, then enable the webhook or delete it.",
        ),
        Rule(
            name="quota_used_up",
            metric="quotas_used_up",
            threshold=0,
            severity=Severity.WARNING,
            action="See what the tenant does, and raise its quota if it may.",
        ),
        Rule(
            name="quota_nearly_used_up",
            metric="quotas_nearly_used_up",
            threshold=0,
            severity=Severity.WARNING,
            action="Talk to the tenant, or raise its quota before it is used up.",
        ),
    ),
    concerns="penstock.apps.agents.pages.overview:concerns",
    metrics=(
        *METRICS,
        Metric(
            name="quotas",
            help="Quotas that are nearly used up (warned), or are (throttled, blocked).",
            read=f"{HEALTH}:states",
            labels=("measure", "state"),
        ),
    ),
)
