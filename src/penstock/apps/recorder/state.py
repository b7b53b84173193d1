"""Where a conversation stands: the rows that are made of it, and what is still open.

A state is put away as JSON after every batch, so it holds no more than the next event has to know.
"""

from typing import Any, Protocol

from msgspec import Struct, field

from penstock.apps.recorder.changes import Change

REMEMBERED = 32
"""So many answers, tools and turns that have ended are remembered, to be told of once more."""


class TurnRow(Struct):
    """A turn, as its table has it."""

    n: int
    status: str
    started_at: int
    ended_at: int | None = None
    prompt: str | None = None
    answer: str | None = None
    model: str | None = None
    input_tokens: int = 0
    output_tokens: int = 0
    cache_write: int = 0
    cache_write_1h: int = 0
    cache_read: int = 0
    response_ms: int | None = None
    agent_id: str | None = None
    branch: int = 0

    def add_tokens(self, counts: list[int]) -> None:
        """Count tokens: input, output, written to a cache, of these for an hour, and read."""
        self.input_tokens += counts[0]
        self.output_tokens += counts[1]
        self.cache_write += counts[2]
        self.cache_write_1h += counts[3]
        self.cache_read += counts[4]

    def forget_tokens(self) -> None:
        """Count from the beginning."""
        self.input_tokens = self.output_tokens = 0
        self.cache_write = self.cache_write_1h = self.cache_read = 0


class ToolRow(Struct):
    """A tool, as its table has it."""

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


class ChangeRow(Struct):
    """A changed file, as its table has it."""

    n: int
    turn: int
    tool: int | None
    file_path: str
    kind: str
    added: int
    removed: int
    at: int
    decision: str | None = None


class EntryRow(Struct):
    """What happened beside turns, as its table has it."""

    n: int
    turn: int
    kind: str
    at: int
    text: str


class Recent(Struct):
    """A change of which one may still hear more."""

    row: ChangeRow
    before: str
    after: str

    @property
    def change(self) -> Change:
        """It, to be compared with another."""
        row = self.row
        return Change(row.file_path, row.kind, row.added, row.removed, self.before, self.after)


class Figures(Struct):
    """What is counted for the metrics of a session."""

    decisions: int = 0
    accepted: int = 0
    direct: int = 0
    rejected: int = 0
    partial: int = 0
    iterations: int = 0
    lines: int = 0
    window: list[int] = []
    gaps: dict[str, int] = {}
    tools: dict[str, int] = {}


class State(Struct, omit_defaults=True):
    """All that the next event has to know."""

    started_at: int = 0
    last_at: int = 0
    ended_at: int | None = None
    title: str = ""
    named: bool = False
    cwd: str = ""
    project: str | None = None
    workspace: str | None = None
    branch: str | None = None
    model: str | None = None
    version: str | None = None
    turns: int = 0
    tools: int = 0
    failures: int = 0
    interruptions: int = 0
    changes: int = 0
    entries: int = 0
    branches: int = 0
    compactions: int = 0
    subagents: int = 0
    switches: int = 0
    complete_at: int | None = None
    """When the latest turn was complete, if it was."""
    tokens: list[int] = field(default_factory=lambda: [0] * 5)
    open: dict[str, int] = {}
    """The turns that go on, by the agent whose they are."""
    last: dict[str, int] = {}
    """The latest turn of each agent."""
    answered: list[str] = []
    """The agents whose open turn has an answer."""
    begun: dict[int, int] = {}
    """When an open turn began that has used no tool yet."""
    running: list[ToolRow] = []
    inputs: dict[int, dict[str, Any]] = {}
    """What running tools were asked to do to files."""
    ended: list[str] = []
    recent: list[Recent] = []
    turn_ids: dict[str, int] = {}
    teller: str = ""
    """Who tells of the session as it happens: hooks, or telemetry where there are none."""
    told_from: int = 0
    """Since when; what a transcript tells of later is known already."""
    prompts: dict[str, list[int]] = {}
    """Turns that were told of, by their prompt, until a transcript tells of them, too."""
    reading: dict[str, int] = {}
    """The turns where a transcript is, by agent."""
    uuids: list[str] = []
    """Records of a transcript since its last prompt."""
    responses: dict[str, list[Any]] = {}
    compacting: EntryRow | None = None
    counts: str = ""
    """The source by which tokens are counted."""
    figures: Figures = field(default_factory=Figures)


class Rows(Protocol):
    """Where rows are that were written before."""

    def turn(self, n: int) -> TurnRow | None:
        """Return a turn by its number."""
        ...


def count(counts: dict[str, int], word: str) -> None:
    """Count a word once more."""
    counts[word] = counts.get(word, 0) + 1


def remember(known: dict[str, Any], name: str, what: Any, most: int = REMEMBERED) -> None:
    """Remember something, and forget the oldest if that is too much."""
    known[name] = what
    while len(known) > most:
        del known[next(iter(known))]
