"""`penstock hooks …`: have assistants record, see which do, and undo it."""

import os
from typing import TYPE_CHECKING, Annotated

from msgspec import Struct

from penstock.apps.recorder import home, install, spool
from penstock.apps.recorder.forward import is_home
from penstock.apps.recorder.install import TOOLS, Change, Tool, tool_named
from penstock.extension import Shown

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.apps.recorder.extension import RecorderSettings

ToolName = Annotated[str, f"Which assistant: {', '.join(TOOLS)}."]
Project = Annotated[bool, "Only for the project in this folder, instead of all of yours."]
DryRun = Annotated[bool, "Show what would change, and change nothing."]


MOST_SHOWN = 40
LINES_SHOWN = 22
"""Of a diff that has more lines than the first figure, so many are shown."""


class Installed(Struct, frozen=True, kw_only=True):
    """An assistant, its settings, and how many of its events run the hook."""

    tool: str
    file: str
    state: str
    events: int
    of: int


async def install_hooks(
    app: "Penstock",
    tool: ToolName,
    project: Project = False,
    dry_run: DryRun = False,
    http: Annotated[str, "Tell the server at this URL, which must be running then."] = "",
) -> Shown:
    """Record what an assistant does, from its next session on.

    Its settings keep all that is in them. What is recorded stays on this machine, in the recorder's
    home, unless the settings name another store. Undo it with `penstock hooks uninstall`.
    """
    chosen = tool_named(tool)
    change = install.installing(chosen, project=project, http=http)
    if not dry_run:
        _write_launcher(app)
        await _make_file(app)
        change.make()
    return _shown(chosen, change, "installed", _where(app), dry_run=dry_run)


async def uninstall_hooks(
    app: "Penstock",  # noqa: ARG001
    tool: ToolName,
    project: Project = False,
    dry_run: DryRun = False,
) -> Shown:
    """Stop recording an assistant; what was recorded stays."""
    chosen = tool_named(tool)
    change = install.uninstalling(chosen, project=project)
    if not dry_run:
        change.make()
    return _shown(chosen, change, "uninstalled", dry_run=dry_run)


async def hooks_status(
    app: "Penstock",  # noqa: ARG001
    tool: Annotated[str, f"Which assistant: {', '.join(TOOLS)}, or all."],
    project: Project = False,
) -> Shown:
    """See which assistants are recorded, and whether anything waits in the spool."""
    chosen = list(TOOLS.values()) if tool == "all" else [tool_named(tool)]
    rows = [state_of(each, project=project) for each in chosen]
    waiting = "Events wait in the spool." if spool.holds_any() else "Nothing waits in the spool."
    place = f"The recorder's home is {home.home()}. {waiting}"
    return Shown((rows, place), {"tools": rows, "home": home.home(), "spool": spool.holds_any()})


async def make_plugin(
    app: "Penstock",
    folder: Annotated[
        str, "Where to put it; by default claude-plugin in the recorder's home."
    ] = "",
) -> str:
    """Write a plugin for Claude Code that records, instead of changing its settings."""
    _write_launcher(app)
    await _make_file(app)
    made = install.make_plugin(folder or home.place("claude-plugin"))
    return f"Made {made}. Start Claude Code with it: claude --plugin-dir {made}"


def state_of(tool: Tool, *, project: bool = False) -> Installed:
    """How far an assistant is recorded."""
    change = install.installing(tool, project=project, http=install.http_in(tool, project=project))
    without = install.uninstalling(tool, project=project)
    events = install.events_in(tool, project=project)
    if change.before is not None and change.before == change.after:
        state = "installed"
    else:
        state = "outdated" if without.before != without.after else "not installed"
    return Installed(
        tool=tool.name,
        file=str(change.file),
        state=state,
        events=len(events),
        of=len(tool.events),
    )


def _where(app: "Penstock") -> str:
    """Say where hooks will write, if that is not where the caller thinks."""
    own = home.place(home.DATABASE)
    if is_home(app) or not os.path.exists(own):
        return ""
    return f"Hooks write {own} as long as it is there: move it to the store you named, or away."


def _shown(tool: Tool, change: Change, done: str, warning: str = "", *, dry_run: bool) -> Shown:
    if not change.diff:
        said = f"Nothing to change: the hooks of {tool.title} are {done} in {change.file}."
    elif dry_run:
        said = f"{change.file} was not changed."
    else:
        said = f"The hooks of {tool.title} are {done} in {change.file}."
    document = {"file": str(change.file), "changed": bool(change.diff), "diff": change.diff}
    diff = change.diff if dry_run else _begun(change.diff)
    return Shown(tuple(part for part in (diff, said, warning) if part), document)


def _begun(diff: str) -> str:
    """A diff as far as somebody reads it who knows what it is about."""
    lines = diff.splitlines()
    if len(lines) <= MOST_SHOWN:
        return diff
    left = len(lines) - LINES_SHOWN
    return "\n".join(
        [*lines[:LINES_SHOWN], f"… and {left} more lines like these; --dry-run shows all."]
    )


def _write_launcher(app: "Penstock") -> None:
    settings: RecorderSettings = app.extensions.settings("recorder")
    install.write_launcher(settings.rules, pseudonyms=settings.pseudonyms)


async def _make_file(app: "Penstock") -> None:
    """Make the recorder's file and its tables, unless what is recorded lives elsewhere."""
    from penstock.app.transact import make_tables

    if not is_home(app):
        return  # hooks spool, and `penstock forward` moves it on
    async with app:
        for name in ("events", "recorder"):
            extension = app.extensions.find(name)
            if extension is not None and extension.tables is not None:
                await make_tables(app, extension.tables)
