"""The recorder as one object; everything that takes time to load stands as a text."""

from msgspec import Struct

from penstock.apps.recorder.platforms import TYPES
from penstock.apps.recorder.routes import ROUTES, SHOWN
from penstock.extension import Command, Extension, Group, Metric, Pass, Process, Table, Tables, Tile

COMMANDS = "penstock.apps.recorder.commands"
PRIVACY = "penstock.apps.recorder.privacy_commands"
PAGES = "penstock.apps.recorder.pages"
HOOKS = "penstock.apps.recorder.hooks_commands"


class ModelSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[penstock.recorder.model]`: which model is asked, if any, and what it may cost.

    Without a `provider` (`anthropic`) everything is done here. `key` says where the key is:
    `env:NAME`, `file:PATH` (0600) or `keyring:SERVICE/NAME`. When a budget is spent, work goes on
    without the model; budgets are of a UTC day, and of one session.
    """

    provider: str = ""
    name: str = "claude-haiku-4-5"
    key: str = "env:ANTHROPIC_API_KEY"
    base_url: str = "https://api.anthropic.com"
    timeout: float = 30
    daily_dollars: float = 1.0
    daily_tokens: int = 1_000_000
    session_tokens: int = 200_000

    def __post_init__(self) -> None:
        if self.provider not in ("", "anthropic"):
            raise ValueError(f"model.provider is {self.provider!r}; it takes 'anthropic' or ''")
        if min(self.timeout, self.daily_dollars, self.daily_tokens, self.session_tokens) < 0:
            raise ValueError("model takes a timeout and budgets of 0 or more")


class LearnSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[penstock.recorder.learn]`: when a conversation is complete, and what is good enough.

    A session is complete when it has ended, or nothing was heard of it for `quiet` seconds.
    """

    enabled: bool = True
    quiet: float = 300
    min_confidence: float = 0.6
    categories: tuple[str, ...] = ()
    """Those that are looked for; all, if none is named."""


class PublishSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[penstock.recorder.publish]`: where approved learnings go. It is off by default.

    `automatic` names categories that need no approval. `key` says where the sender's key is:
    `env:NAME`, `file:PATH` (0600) or `keyring:SERVICE/NAME`. Fees are in gwei, and no more than
    `max_fee` is ever offered; a transaction is `confirmed` so many blocks deep, and replaced after
    `stuck_after` seconds.
    """

    enabled: bool = False
    automatic: tuple[str, ...] = ()
    kubo: str = "http://127.0.0.1:5001"
    rpc: str = "http://127.0.0.1:8545"
    chain_id: int = 0
    contract: str = ""
    key: str = ""
    license: str = "CC-BY-4.0"
    max_fee: float = 100
    confirmations: int = 12
    stuck_after: float = 180

    def __post_init__(self) -> None:
        if self.enabled and not (self.chain_id > 0 and self.contract and self.key):
            raise ValueError("publish takes chain_id, contract and key when it is enabled")
        if self.confirmations < 1 or self.max_fee <= 0 or self.stuck_after <= 0:
            raise ValueError("publish takes confirmations, max_fee and stuck_after above 0")


class RecorderSettings(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[penstock.recorder]` in TOML, or `PENSTOCK_RECORDER__RULES`.

    `rules` is a TOML file with rules of your own beside ours; `pseudonyms` replaces a value by the
    same word throughout a session instead of one for all. `transcripts` are folders below which
    transcripts of sessions are followed that hooks tell of; none are if it is empty. `cursor` is
    Cursor's folder, or `usual`, if its own store is to be watched. With `spans`, sessions go to the
    OpenTelemetry provider of the program, if it has set one.
    """

    rules: str = ""
    pseudonyms: bool = False
    transcripts: tuple[str, ...] = ("~/.claude/projects",)
    cursor: str = ""
    spans: bool = False
    model: ModelSettings = ModelSettings()
    learn: LearnSettings = LearnSettings()
    publish: PublishSettings = PublishSettings()


TABLES = Tables(
    extension="recorder",
    package="penstock.apps.recorder",
    tables=(
        Table("recorder_messages", key=("id",), tenant="tenant_id", person="person"),
        Table("recorder_redactions", key=("id",), tenant="tenant_id"),
        Table("recorder_conversations", key=("id",), tenant="tenant_id", person="person"),
        Table("recorder_states", key=("conversation_id", "consumer"), tenant="tenant_id"),
        Table("recorder_turns", key=("conversation_id", "n"), tenant="tenant_id"),
        Table("recorder_tools", key=("conversation_id", "n"), tenant="tenant_id"),
        Table("recorder_changes", key=("conversation_id", "n"), tenant="tenant_id"),
        Table("recorder_entries", key=("conversation_id", "n"), tenant="tenant_id"),
        Table("recorder_commits", key=("conversation_id", "hash"), tenant="tenant_id"),
        Table("recorder_spent", key=("conversation_id", "model", "agent_id"), tenant="tenant_id"),
        Table("recorder_metrics", key=("conversation_id",), tenant="tenant_id"),
        Table("recorder_positions", key=("id",)),
        Table("recorder_insights", key=("conversation_id", "kind", "n"), tenant="tenant_id"),
        Table("recorder_learnings", key=("id",), tenant="tenant_id", person="person"),
        Table(
            "recorder_extractions",
            key=("conversation_id", "version"),
            tenant="tenant_id",
            person="person",
        ),
        Table("recorder_due", key=("conversation_id",), tenant="tenant_id", person="person"),
        Table("recorder_uploads", key=("id",), tenant="tenant_id", person="person"),
        Table("recorder_senders", key=("chain_id", "address")),
        Table("recorder_revocations", key=("id",), tenant="tenant_id"),
        Table("recorder_costs", key=("id",), tenant="tenant_id", person="person"),
        Table("recorder_retention", key=("tenant_id", "scope", "name"), tenant="tenant_id"),
    ),
)

recorder = Extension(
    name="recorder",
    title="Recorder",
    needs="recorder",
    help="See what AI coding assistants did: sessions, costs, learnings, and what was taken out.",
    settings=RecorderSettings,
    tables=TABLES,
    namespace="penstock.apps.recorder.namespace:Recorder",
    on_remote="penstock.apps.recorder.remote:RemoteRecorder",
    blueprint="penstock.apps.recorder.jobs:jobs",
    passes=(
        Pass(name="retain", every=3_600.0, run="penstock.apps.recorder.privacy:retain"),
        Pass(name="spans", every=60.0, run="penstock.apps.recorder.spans:send"),
        Pass(name="complete", every=15.0, run="penstock.apps.recorder.complete:look"),
        Pass(name="summarise", every=60.0, run="penstock.apps.recorder.summaries:look"),
        Pass(name="follow", every=10.0, run="penstock.apps.recorder.importing:follow"),
        Pass(name="flush_spool", every=5.0, run="penstock.apps.recorder.forward:flush_at_home"),
        Pass(name="watch_cursor", every=30.0, run="penstock.apps.recorder.cursor_store:watch"),
    ),
    processes=(
        Process(
            name="forward",
            run="penstock.apps.recorder.forward:forward",
            wanted="penstock.apps.recorder.forward:is_wanted",
            help="Move what hooks of this machine captured to a store that is a server.",
            panel="Run jobs",
        ),
    ),
    commands=(
        Command(name="up", run=f"{COMMANDS}:up", opens=False, writes=True),
        Command(name="sessions", run=f"{COMMANDS}:sessions"),
        Command(name="show", run=f"{COMMANDS}:show"),
        Command(name="stats", run=f"{COMMANDS}:stats"),
        Command(name="search", run=f"{COMMANDS}:search"),
        Command(name="caught", run=f"{COMMANDS}:caught"),
        Command(name="learnings", run=f"{COMMANDS}:learnings"),
        Command(name="learning", run=f"{COMMANDS}:learning"),
        Command(name="approve", run=f"{COMMANDS}:approve"),
        Command(name="reject", run=f"{COMMANDS}:reject"),
        Command(name="edit", run=f"{COMMANDS}:edit"),
        Command(name="revoke", run=f"{COMMANDS}:revoke"),
        Command(name="spans", run=f"{COMMANDS}:spans"),
        Command(
            name="import", run="penstock.apps.recorder.importing:import_transcripts", writes=True
        ),
        Command(name="demo", run=f"{COMMANDS}:demo", writes=True),
        Command(name="export", run=f"{PRIVACY}:export"),
        Command(name="delete", run=f"{PRIVACY}:delete"),
        Command(name="retention", run=f"{PRIVACY}:retention"),
    ),
    routes=ROUTES,
    templates="penstock.apps.recorder",
    pages=SHOWN,
    tiles=(
        Tile(title="Active sessions", figure=f"{PAGES}:count_active", path="recorder"),
        Tile(
            title="Learnings to decide on",
            figure=f"{PAGES}:count_proposed",
            path="recorder/learnings",
        ),
    ),
    metrics=(
        Metric(
            name="sessions_active",
            help="Sessions of assistants that were seen in the last hour.",
            read=f"{PAGES}:count_active",
        ),
    ),
    adds={
        "events.types": TYPES,
        "events.gate": "penstock.apps.recorder.gate:EventGate",
        "events.consumers": (
            "penstock.apps.recorder.git:consumer",
            "penstock.apps.recorder.metrics:consumer",
            "penstock.apps.recorder.conversations:consumer",
            "penstock.apps.recorder.insights:consumer",
            "penstock.apps.recorder.learnings:consumer",
        ),
        "events.series": tuple(
            f"penstock.apps.recorder.metrics:{name}"
            for name in ("TOOL_MS", "RESPONSE_MS", "KEPT", "INTERRUPTIONS")
        ),
    },
    home="penstock.apps.recorder.home:url",
    alone=(
        Command(
            name="sanitise", run="penstock.apps.recorder.sanitise_command:sanitise", opens=False
        ),
    ),
    redact="penstock.apps.recorder.gate:redact",
    groups=(
        Group(
            name="hooks",
            help="Have AI coding assistants tell the recorder what they do.",
            commands=(
                Command(name="install", run=f"{HOOKS}:install_hooks", opens=False),
                Command(name="uninstall", run=f"{HOOKS}:uninstall_hooks", opens=False),
                Command(name="status", run=f"{HOOKS}:hooks_status", opens=False),
                Command(name="plugin", run=f"{HOOKS}:make_plugin", opens=False),
            ),
        ),
    ),
)
