"""A conversation in the making: events come in their order, and rows come out.

It holds nothing but its state and the rows that are open, so that it can be put away after any
event and go on in another process: what it derives depends on the events and their order alone.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from penstock.apps.recorder.captured import digest
from penstock.apps.recorder.changes import SHELLS, changes_of, edited, edits_files
from penstock.apps.recorder.decisions import Decisions
from penstock.apps.recorder.moments import (
    COUNTER,
    HOOK,
    LONGEST_ERROR,
    OURS,
    TELEMETRY,
    TRANSCRIPT,
    Moment,
    cut,
    moments,
    summary,
)
from penstock.apps.recorder.platforms import text_of, value
from penstock.apps.recorder.spending import Spending
from penstock.apps.recorder.state import (
    REMEMBERED,
    EntryRow,
    Rows,
    State,
    ToolRow,
    TurnRow,
    count,
    remember,
)
from penstock.events.event import Event

ITERATING_MS, ACCEPTED_MS = 10_000, 30_000
"""A prompt that comes sooner than the first iterates, one that comes later than the second accepts
what was done; between them somebody reviews."""
TWICE_MS = 3_000
TITLE = 80


class Reconstruction:
    """One conversation: `apply` its events, then write the rows that have changed."""

    def __init__(self, state: State, rows: Rows | None = None) -> None:
        self.state = state
        self.turns: dict[int, TurnRow] = {}
        self.tools: dict[int, ToolRow] = {}
        self.entries: dict[int, EntryRow] = {}
        self.decisions = Decisions(state)
        self.commits: list[Mapping[str, Any]] = []
        self.spending = Spending(state, self._turn)
        self.told: list[tuple[str, float, dict[str, str]]] = []
        """Figures of the event that was applied last: series, value, labels."""
        self.ended: list[ToolRow] = []
        """The tools that ended with it."""
        self._rows = rows

    def apply(self, event: Event) -> None:
        """Take in the next event."""
        self.told.clear()
        self.ended.clear()
        self.decisions.added.clear()
        self.decisions.made.clear()
        if event.event_type in OURS:
            return
        state, at = self.state, event.timestamp
        if not state.started_at or at < state.started_at:
            state.started_at = at
        state.last_at = max(state.last_at, at)
        self._know(event)
        for moment in moments(event):
            self.decisions.settle(moment.at)
            handle = self.handlers.get(moment.kind)
            if handle is not None:
                handle(self, moment)
            if moment.uuid and moment.uuid not in state.uuids[-2:]:
                state.uuids = [*state.uuids[-63:], moment.uuid]
        self.told += [("recorder.kept", int(kept), {}) for kept in self.decisions.made]

    def _know(self, event: Event) -> None:
        """Learn where a session is at work."""
        state, payload = self.state, event.payload
        source = event.metadata.get("source", HOOK)
        first = source == HOOK and state.teller != HOOK and event.event_type != "git_commit"
        if first or (source == TELEMETRY and not state.teller and not state.turns):
            state.teller, state.told_from = source, event.timestamp
        if not state.cwd:
            roots = value(payload, "workspaces")
            cwd = payload.get("cwd") or (roots[0] if isinstance(roots, list) and roots else None)
            state.cwd = cwd if isinstance(cwd, str) else ""
        metadata = event.metadata
        state.project = metadata.get("project_name") or state.project
        state.workspace = metadata.get("workspace_hash") or state.workspace
        state.branch = metadata.get("git_branch") or payload.get("gitBranch") or state.branch
        version = value(payload, "version")
        if isinstance(version, str):
            state.version = version

    def _turn(self, n: int) -> TurnRow:
        """A turn that is about to change."""
        row = self.turns.get(n)
        if row is None:
            found = self._rows.turn(n) if self._rows is not None else None
            row = self.turns[n] = found or TurnRow(n, "open", self.state.started_at)
            if self.spending.anew:
                row.forget_tokens()
        return row

    def _begin(self, moment: Moment, agent: str, prompt: str | None) -> int:
        """Begin a turn; one that is open was interrupted, if that would have been told."""
        state = self.state
        if agent in state.open:
            answered = moment.source == TELEMETRY or agent in state.answered
            whole = moment.source != HOOK and answered
            self._end(agent, "complete" if whole else "interrupted", moment.at)
        state.turns += 1
        n = state.turns
        self.turns[n] = TurnRow(
            n,
            "open",
            moment.at,
            prompt=prompt,
            model=moment.model or (None if agent else state.model),
            agent_id=agent or None,
            branch=state.branches,
        )
        state.open[agent] = state.last[agent] = n
        if prompt is not None:
            state.begun[n] = moment.at
        if moment.turn_id:
            remember(state.turn_ids, moment.turn_id, n)
        if moment.source == TRANSCRIPT:
            state.reading[agent] = n
        return n

    def _end(self, agent: str, status: str, at: int, answer: str | None = None) -> None:
        """End an agent's turn, if one is open, and the tools that still run in it."""
        state = self.state
        n = state.open.pop(agent, None)
        if n is None:
            if answer and agent in state.last:
                self._turn(state.last[agent]).answer = answer
            return
        for tool in [each for each in state.running if (each.agent_id or "") == agent]:
            self._finish(tool, "interrupted")
        row = self._turn(n)
        row.status, row.ended_at = status, at
        row.answer = answer or row.answer
        state.begun.pop(n, None)
        state.answered = [each for each in state.answered if each != agent]
        if not agent:
            state.complete_at = at if status == "complete" else None

    def _place(self, moment: Moment) -> int:
        """The turn that a moment belongs to; one that nobody began is begun without a prompt."""
        state, agent = self.state, moment.agent
        if moment.turn_id in state.turn_ids and not agent:
            return state.turn_ids[moment.turn_id]
        if moment.source == TRANSCRIPT and agent in state.reading:
            return state.reading[agent]
        if agent in state.open:
            return state.open[agent]
        return self._begin(moment, agent, None)

    def _is_known(self, moment: Moment) -> bool:
        """Tell whether who tells of the session has told of this, and another source does, too."""
        state = self.state
        if moment.source == TELEMETRY and state.teller != TELEMETRY:
            return True
        told = state.teller not in ("", moment.source)
        return told and moment.at >= state.told_from

    def _prompt(self, moment: Moment) -> None:
        state, text = self.state, moment.text or ""
        if moment.source == TRANSCRIPT and not moment.agent:
            if moment.parent and state.uuids and moment.parent not in state.uuids:
                state.branches += 1  # somebody went back, and this follows something earlier
            state.uuids = []
        if self._is_known(moment) and not moment.agent:
            self._meet(moment, digest(text))
            return
        if self._is_told_twice(moment, digest(text)):
            return
        self._gap(moment)
        n = self._begin(moment, moment.agent, moment.text)
        if moment.agent:
            return
        state.ended_at = state.complete_at = None
        if moment.source == state.teller:
            waiting = [*state.prompts.pop(digest(text), []), n]
            remember(state.prompts, digest(text), waiting, 500)
        if not state.title:
            state.title = cut(" ".join(text.split()), TITLE) or ""

    def _is_told_twice(self, moment: Moment, prompt: str) -> bool:
        """Tell whether a turn has just begun with the same prompt, as Copilot's first ones do."""
        state = self.state
        n = state.open.get(moment.agent, 0)
        since = state.begun.get(n)
        soon = since is not None and moment.at - since < TWICE_MS
        return soon and n in state.prompts.get(prompt, ())

    def _meet(self, moment: Moment, prompt: str) -> None:
        """Find the turn that was told of, and of which a transcript tells, too."""
        state = self.state
        waiting = state.prompts.get(prompt, [])
        n = waiting.pop(0) if waiting else state.last.get("", 0)
        if not waiting:
            state.prompts.pop(prompt, None)
        if n and moment.source == TRANSCRIPT:
            state.reading[""] = n
            if state.branches:
                self._turn(n).branch = state.branches

    def _gap(self, moment: Moment) -> None:
        """Tell from how soon a prompt comes what somebody thinks of the answer before."""
        since = self.state.complete_at
        if moment.agent or since is None:
            return
        gap = moment.at - since
        between = "reviewing" if gap >= ITERATING_MS else "iterating"
        count(self.state.figures.gaps, "accepted" if gap > ACCEPTED_MS else between)

    def _answer(self, moment: Moment) -> None:
        state = self.state
        n = self._place(moment)
        row = self._turn(n)
        if moment.model:
            row.model = moment.model
            if not moment.agent:
                state.model = moment.model
        if moment.text and (row.status == "open" or row.answer is None):
            row.answer = moment.text
        if moment.text and state.open.get(moment.agent) == n:
            state.answered = [*state.answered, moment.agent][-REMEMBERED:]
        silent = state.teller == TELEMETRY  # it does not tell when a turn ends
        ends = moment.ends and (silent or not self._is_known(moment))
        if ends and state.open.get(moment.agent) == n:
            self._end(moment.agent, "complete", moment.at)

    def _turn_end(self, moment: Moment) -> None:
        if self._is_known(moment):
            return
        status = "interrupted" if moment.interrupted else "complete"
        if moment.told.get("status") == "error":
            status = "failed"
        self._end("", status, moment.at, moment.text)

    def _whole_turn(self, moment: Moment) -> None:
        """Take in a turn that is told of as a whole when it has ended."""
        answer = cut(text_of(value(moment.told, "last_assistant_message")))
        if moment.turn_id not in self.state.turn_ids:
            self._prompt(moment)
        self._end("", "complete", moment.at, answer)

    def _turn_failed(self, moment: Moment) -> None:
        self._entry(moment, "error", moment.text or "")
        self._end("", "failed", moment.at)

    def _interruption(self, moment: Moment) -> None:
        if not self._is_known(moment):
            self._end(moment.agent, "interrupted", moment.at)

    def _subagent_start(self, moment: Moment) -> None:
        self.state.subagents += 1
        asked = [tool.summary for tool in self.state.running if tool.name in ("Task", "Agent")]
        self._begin(moment, moment.agent, asked[-1] if asked else None)
        self._entry(moment, "subagent", text_of(value(moment.told, "agent_type")) or moment.agent)

    def _subagent_end(self, moment: Moment) -> None:
        self._end(moment.agent, "complete", moment.at, moment.text)

    def _tool_before(self, moment: Moment) -> None:
        state = self.state
        told_of = moment.tool_use_id in state.ended or self._running(moment) is not None
        if told_of or self._is_known(moment):
            return
        n = self._place(moment)
        since = state.begun.pop(n, None)
        if since is not None:
            self._turn(n).response_ms = moment.at - since
            self.told.append(("recorder.response_ms", max(0, moment.at - since), {}))
        state.tools += 1
        tool = ToolRow(
            state.tools,
            n,
            moment.tool_use_id,
            moment.tool or "unknown",
            summary(moment.input),
            "running",
            moment.at,
            agent_id=moment.agent or None,
        )
        self.tools[tool.n] = tool
        state.running.append(tool)
        if edits_files(tool.name) or tool.name.lower() in SHELLS:
            state.inputs[tool.n] = dict(moment.input)
        count(state.figures.tools, tool.name)

    def _running(self, moment: Moment) -> ToolRow | None:
        """The running tool that a moment tells of: by its id, or else by name and arguments."""
        wanted = summary(moment.input)
        for tool in self.state.running:
            if moment.tool_use_id and tool.tool_use_id:
                if moment.tool_use_id == tool.tool_use_id:
                    return tool
                continue
            alike = tool.name == moment.tool or {tool.name.lower(), moment.tool.lower()} <= SHELLS
            if alike and (tool.agent_id or "") == moment.agent and tool.summary == wanted:
                return tool
        return None

    def _tool_after(self, moment: Moment) -> None:
        state = self.state
        if self._is_known(moment) or moment.tool_use_id in state.ended:
            return
        tool, known = self._running(moment), True
        if tool is None:
            if not moment.tool:
                return
            self._tool_before(moment._replace(at=moment.at - (moment.duration_ms or 0)))
            tool = state.running[-1]
            known = moment.duration_ms is not None
        if not tool.tool_use_id:
            tool.tool_use_id = moment.tool_use_id
        status = "interrupted" if moment.interrupted else "ok" if moment.ok else "failed"
        error = None if status == "ok" else cut(text_of(moment.output).strip(), LONGEST_ERROR)
        asked = state.inputs.get(tool.n) or moment.input
        self._finish(tool, status, error, moment.at if known else None)
        if status == "ok":
            self._changed(tool, asked, moment)

    def _finish(
        self, tool: ToolRow, status: str, error: str | None = None, at: int | None = None
    ) -> None:
        """End a tool; one of whose end nobody heard has no duration."""
        state = self.state
        state.running = [each for each in state.running if each.n != tool.n]
        state.inputs.pop(tool.n, None)
        if tool.tool_use_id:
            state.ended = [*state.ended[1 - REMEMBERED :], tool.tool_use_id]
        tool.status, tool.error = status, error
        if at is not None:
            tool.duration_ms = max(0, at - tool.started_at)
        self.tools[tool.n] = tool
        self.ended.append(tool)
        if status == "interrupted":
            state.interruptions += 1
            self.told.append(("recorder.interruptions", 1, {}))
        state.failures += status == "failed"
        if status in ("ok", "failed") and tool.duration_ms is not None:
            self.told.append(("recorder.tool_ms", tool.duration_ms, {"tool": tool.name}))

    def _denied(self, moment: Moment) -> None:
        """Somebody did not let a tool run."""
        tool = self._running(moment)
        if tool is None:
            self._tool_before(moment)
            tool = self._running(moment)
        if tool is not None:
            reason = cut(text_of(moment.told.get("reason")), LONGEST_ERROR)
            self._finish(tool, "denied", reason)
            if edits_files(tool.name):
                self.decisions.denied()

    def _decision(self, moment: Moment) -> None:
        """Take down what telemetry says; only rejections are not known otherwise."""
        if edits_files(moment.tool) and not moment.ok and not self._is_known(moment):
            self.decisions.denied()

    def _changed(self, tool: ToolRow, asked: Mapping[str, Any], moment: Moment) -> None:
        """See what a tool has done to files."""
        command = asked.get("command") or asked.get("CommandLine")
        if tool.name.lower() in SHELLS and isinstance(command, str | list):
            line = command if isinstance(command, str) else " ".join(map(str, command))
            self.decisions.command(line, moment.at)
        if "generation_id" in moment.told:
            return  # Cursor tells of every change by itself
        for change in changes_of(tool.name, asked, moment.output):
            self.decisions.add(change, tool.turn, tool.n, moment.at)

    def _edit(self, moment: Moment) -> None:
        """Take in a change that an assistant tells of by itself."""
        path, edits = moment.told.get("file_path"), moment.told.get("edits")
        if not isinstance(path, str) or self._is_known(moment):
            return
        n = self._place(moment)
        tools = [each for each in self.state.running if each.turn == n and edits_files(each.name)]
        change = edited(path, edits if isinstance(edits, list) else [])
        self.decisions.add(change, n, tools[-1].n if tools else None, moment.at)

    def _touched(self, moment: Moment) -> None:
        self.decisions.touched(text_of(moment.told.get("file_path")))

    def _session_start(self, moment: Moment) -> None:
        state = self.state
        state.model = moment.model or state.model
        state.ended_at = None
        title = moment.told.get("session_title")
        if isinstance(title, str) and title:
            state.title, state.named = title[:TITLE], True
        self._entry(moment, "session_start", text_of(moment.told.get("source")))
        prompt = value(moment.told, "initial_prompt")
        if isinstance(prompt, str) and prompt:
            self._prompt(moment._replace(text=cut(prompt)))

    def _session_end(self, moment: Moment) -> None:
        state = self.state
        for agent in list(state.open):
            self._end(agent, "interrupted", moment.at)
        self.decisions.end()
        state.ended_at = moment.at
        self._entry(moment, "session_end", text_of(moment.told.get("reason")))

    def _compaction(self, moment: Moment) -> None:
        """Take down a compaction once, though it is told of before and after."""
        state = self.state
        if self._is_known(moment):
            return
        text = moment.text or text_of(moment.told.get("trigger"))
        if moment.kind == "compact_after" and state.compacting is not None:
            row, state.compacting = state.compacting, None
            row.text = text[:LONGEST_ERROR]
            self.entries[row.n] = row
            return
        state.compactions += 1
        row = self._entry(moment, "compaction", text)
        state.compacting = row if moment.kind == "compact_before" else None

    def _model_switch(self, moment: Moment) -> None:
        state = self.state
        state.switches += 1
        to = text_of(moment.told.get("to_model")) or moment.model or ""
        self._entry(moment, "model_switch", f"{text_of(moment.told.get('from_model'))} → {to}")
        state.model = to or state.model

    def _notification(self, moment: Moment) -> None:
        self._entry(moment, "notification", text_of(moment.told.get("message")))

    def _title(self, moment: Moment) -> None:
        if moment.text and not self.state.named:
            self.state.title = moment.text[:TITLE]

    def _commit(self, moment: Moment) -> None:
        self.commits.append({"at": moment.at, **moment.told})

    def _entry(self, moment: Moment, kind: str, text: str) -> EntryRow:
        state = self.state
        state.entries += 1
        where = (state.entries, state.last.get("", 0))
        row = EntryRow(*where, kind, moment.at, text[:LONGEST_ERROR])
        self.entries[row.n] = row
        return row

    def _usage(self, moment: Moment) -> None:
        if moment.usage is None or moment.model is None:
            return
        anew = self.spending.anew
        if not self.spending.takes(moment.source):
            return
        if self.spending.anew and not anew:
            for row in self.turns.values():
                row.forget_tokens()
        # A counter tells of its turn when that may have ended.
        latest = self.state.last.get(moment.agent) if moment.source == COUNTER else None
        turn = latest or self._place(moment)
        self.spending.count(moment.usage, turn, moment.agent, moment.model)

    handlers: ClassVar[Mapping[str, Callable[[Any, Moment], None]]] = {
        "prompt": _prompt,
        "tool_before": _tool_before,
        "tool_after": _tool_after,
        "permission_denied": _denied,
        "decision": _decision,
        "edit": _edit,
        "file_changed": _touched,
        "answer": _answer,
        "turn_end": _turn_end,
        "turn": _whole_turn,
        "turn_failed": _turn_failed,
        "interruption": _interruption,
        "subagent_start": _subagent_start,
        "subagent_end": _subagent_end,
        "session_start": _session_start,
        "session_end": _session_end,
        "compact_before": _compaction,
        "compact_after": _compaction,
        "model_switch": _model_switch,
        "notification": _notification,
        "title": _title,
        "commit": _commit,
        "usage": _usage,
    }
