"""What is known of a session: the records that pages, commands and the API show.

Times are UTC milliseconds, durations milliseconds, costs US dollars.
"""

from msgspec import Struct


class Tokens(Struct, frozen=True, kw_only=True):
    """Tokens, as models count them, and what they cost; None where the price is not known."""

    input: int = 0
    output: int = 0
    cache_write: int = 0
    cache_read: int = 0
    cost: float | None = None


class Tool(Struct, frozen=True, kw_only=True):
    """A tool that a model used: `ok`, `failed`, `denied`, `interrupted`, or still `running`."""

    n: int
    turn: int
    tool_use_id: str
    name: str
    summary: str
    status: str
    started_at: int
    duration_ms: int | None = None
    error: str | None = None
    agent_id: str | None = None


class CodeChange(Struct, frozen=True, kw_only=True):
    """A file that was changed: `write`, `edit` or `delete`, and what became of it.

    The decision is `accepted`, `rejected` (undone within 30 s), `partial` (modified but kept), or
    None while nobody can tell.
    """

    n: int
    turn: int
    tool: int | None
    file_path: str
    kind: str
    added: int
    removed: int
    at: int
    decision: str | None = None


class Turn(Struct, frozen=True, kw_only=True):
    """From a prompt to the end of the answer: `open`, `complete`, `interrupted` or `failed`.

    `branch` is the number of the branch that it is on, 0 unless somebody went back.
    """

    n: int
    status: str
    started_at: int
    ended_at: int | None = None
    prompt: str | None = None
    answer: str | None = None
    model: str | None = None
    tokens: Tokens = Tokens()
    response_ms: int | None = None
    agent_id: str | None = None
    branch: int = 0


class Entry(Struct, frozen=True, kw_only=True):
    """What happened beside turns, such as `session_start`, `compaction` or `model_switch`."""

    n: int
    turn: int
    kind: str
    at: int
    text: str = ""


class Commit(Struct, frozen=True, kw_only=True):
    """A commit that was made in a session."""

    hash: str
    branch: str
    at: int
    files: list[str]
    subject: str = ""


class Spent(Struct, frozen=True, kw_only=True):
    """Tokens of one model, by the session itself or by a subagent."""

    model: str
    agent_id: str | None
    tokens: Tokens


class Insight(Struct, frozen=True, kw_only=True):
    """Something worth knowing of a session: `summary`, `friction` or `repeated_failure`."""

    kind: str
    title: str
    text: str
    source: str
    at: int


class SessionFilter(Struct, frozen=True, kw_only=True):
    """Which sessions to list, those with the latest activity first.

    `since` and `until` bound the time of their last activity, `until` not included. A page goes on
    where the one before ended: `before` is its last row's `place`.
    """

    tenant: str | None = None
    platform: str | None = None
    project: str | None = None
    status: str | None = None
    since: int | None = None
    until: int | None = None
    before: str | None = None
    limit: int = 50


class SessionRow(Struct, frozen=True, kw_only=True):
    """A session as a list shows it: `active`, `complete` (it ended) or `quiet` (it went silent)."""

    id: str
    platform: str
    session_id: str
    tenant_id: str
    title: str
    project: str | None
    branch: str | None
    model: str | None
    status: str
    started_at: int
    last_at: int
    ended_at: int | None
    turns: int
    tools: int
    failures: int
    changes: int
    messages: int
    tokens: Tokens
    acceptance_rate: float | None
    productivity: float | None

    @property
    def place(self) -> str:
        """Where a list goes on after this one."""
        return f"{self.last_at}-{self.id}"


class SessionView(Struct, frozen=True, kw_only=True):
    """All of a session."""

    row: SessionRow
    turns: list[Turn]
    tools: list[Tool]
    changes: list[CodeChange]
    entries: list[Entry]
    commits: list[Commit]
    spent: list[Spent]
    insights: list[Insight]


class MessageRow(Struct, frozen=True, kw_only=True):
    """A message of a session, sanitised, in the order in which they came."""

    id: str
    role: str
    content: str
    sequence: int
    at: int
    token_count: int | None = None
    validated: str | None = None


class Percentiles(Struct, frozen=True, kw_only=True):
    """How long something took."""

    count: int
    p50: float
    p95: float
    p99: float


class Hit(Struct, frozen=True, kw_only=True):
    """A message that a search found; the snippet marks what was found with ‹ and ›."""

    conversation_id: str
    message_id: str
    role: str
    at: int
    snippet: str
    platform: str
    title: str


class Day(Struct, frozen=True, kw_only=True):
    """Figures of one UTC date; rates are None where there was nothing to judge."""

    date: str
    sessions: int
    turns: int
    tools: int
    failures: int
    tokens: int
    cost: float
    acceptance_rate: float | None
    productivity: float | None


class Stats(Struct, frozen=True, kw_only=True):
    """Figures over a span of time; days are UTC dates, the oldest first."""

    sessions: int
    active: int
    turns: int
    tools: int
    failures: int
    interruptions: int
    acceptance_rate: float | None
    direct_accept_rate: float | None
    rejection_rate: float | None
    iteration_rate: float | None
    response: Percentiles | None
    latency: dict[str, Percentiles]
    diversity: float
    productivity: float | None
    tokens: Tokens
    by_model: list[Spent]
    by_day: list[Day]


class Upload(Struct, frozen=True, kw_only=True):
    """How far the publishing of a learning has come.

    It is `pending`, `ipfs_uploaded`, `tx_submitted`, `confirmed` or `failed`; `revoked_at` is when
    it was withdrawn.
    """

    status: str
    ipfs_cid: str | None
    chain_tx_hash: str | None
    chain_id: int | None
    block_number: int | None
    retries: int
    last_error: str | None
    updated_at: int
    confirmed_at: int | None = None
    revoked_at: int | None = None


class Learning(Struct, frozen=True, kw_only=True):
    """Something that was learned in a session: `proposed`, `approved`, `rejected` or `superseded`.

    `source` is the model that found it, or `offline`.
    """

    id: str
    tenant_id: str
    conversation_id: str
    source_message_ids: list[str]
    category: str
    title: str
    content: str
    confidence: float
    tags: list[str]
    status: str
    source: str
    created_at: int
    edited_at: int | None = None
    decided_by: str | None = None
    decided_at: int | None = None
    superseded_by: str | None = None
    upload: Upload | None = None


class LearningFilter(Struct, frozen=True, kw_only=True):
    """Which learnings to list, the latest first; `text` is searched for in all that they say."""

    tenant: str | None = None
    status: str | None = None
    category: str | None = None
    conversation_id: str | None = None
    text: str | None = None
    before: str | None = None
    limit: int = 50


class Caught(Struct, frozen=True, kw_only=True):
    """What one rule of the sanitiser has taken out; never what it was."""

    category: str
    rule_id: str
    detector: str
    count: int
    sessions: int
    confidence: float
    last_at: int


class OwnCost(Struct, frozen=True, kw_only=True):
    """What the recorder's own calls of a model cost, for one purpose."""

    purpose: str
    model: str
    calls: int
    input: int
    output: int
    cost: float
