"""Put the hook into the settings of an assistant, and take it out again.

What else stands in those settings stays as it is, byte for byte; ours is known by its launcher.
"""

import difflib
import json
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from msgspec import Struct

from penstock.apps.recorder.capture import PSEUDONYMS, RULES
from penstock.apps.recorder.home import FOLDER, LAUNCHER, home, make_home, place
from penstock.apps.recorder.json_edit import JsonText, Node
from penstock.apps.recorder.platforms import HOOKS
from penstock.model.errors import InvalidOption

ROUTE = "/api/recorder/hooks/"
TOKEN = "PENSTOCK_TOKEN"
OURS = (LAUNCHER, ROUTE)
SECONDS = 10
"""An assistant that waits longer for a hook of ours ends it; it never takes that long."""


class Tool(Struct, frozen=True, kw_only=True):
    """An assistant whose hooks can be installed: where its settings are, and how an entry looks.

    `grouped` entries stand in a group that may have a matcher. `below` is what the hooks stand
    under; `version` is what a new file has to begin with.
    """

    platform: str
    title: str
    user: str
    project: str
    entry: Callable[[list[str]], dict[str, Any]]
    grouped: bool = True
    below: tuple[str, ...] = ("hooks",)
    version: bool = False
    folder_in: str = ""
    plain: tuple[str, ...] = ()
    """Events whose entries stand in no group, though others do."""
    over_http: tuple[str, ...] = ()
    """Events that a server may be told of: those that come often, and not the first and last."""

    @property
    def name(self) -> str:
        """As it is typed."""
        return self.platform.replace("_", "-")

    @property
    def events(self) -> list[str]:
        """The events to register."""
        return [name for name, hook in HOOKS[self.platform].items() if hook.register]

    def file(self, *, project: bool) -> Path:
        """Its settings, those of the user or of the project in the current folder."""
        if project:
            return Path.cwd() / self.project
        moved = os.environ.get(self.folder_in, "") if self.folder_in else ""
        if moved:
            return Path(moved).expanduser() / Path(self.user).name
        return Path.home() / self.user

    def wanted(self, event: str, command: list[str], url: str = "") -> dict[str, Any]:
        """What stands in the settings for an event; with a URL, a server is told where it can."""
        by_http = url and event in self.over_http
        entry = _http(url, self) if by_http else self.entry([*command, self.platform, event])
        return {"hooks": [entry]} if self.grouped and event not in self.plain else entry


def _claude(words: list[str]) -> dict[str, Any]:
    # With `args` no shell is started.
    return {"type": "command", "command": words[0], "args": words[1:], "timeout": SECONDS}


def _http(url: str, tool: "Tool") -> dict[str, Any]:
    """What tells a server instead; a token, if there is one, is named and not written down."""
    entry: dict[str, Any] = {
        "type": "http",
        "url": f"{url.rstrip('/')}{ROUTE}{tool.platform}",
        "timeout": SECONDS,
    }
    if os.environ.get(TOKEN):
        entry["headers"] = {"Authorization": f"Bearer ${TOKEN}"}
        entry["allowedEnvVars"] = [TOKEN]
    return entry


def _command(words: list[str]) -> dict[str, Any]:
    return {"type": "command", "command": shlex.join(words), "timeout": SECONDS}


def _cursor(words: list[str]) -> dict[str, Any]:
    return {"command": shlex.join(words), "timeout": SECONDS}


def _gemini(words: list[str]) -> dict[str, Any]:
    return {"name": "penstock", **_command(words), "timeout": 1000 * SECONDS}


def _copilot(words: list[str]) -> dict[str, Any]:
    return {"type": "command", "bash": shlex.join(words), "timeoutSec": SECONDS}


TOOLS = {
    tool.name: tool
    for tool in (
        Tool(
            platform="claude_code",
            title="Claude Code",
            user=".claude/settings.json",
            project=".claude/settings.local.json",
            entry=_claude,
            folder_in="CLAUDE_CONFIG_DIR",
            over_http=(
                *("UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure"),
                *("PermissionRequest", "SubagentStop", "TaskCompleted", "Stop"),
            ),
        ),
        Tool(
            platform="cursor",
            title="Cursor",
            user=".cursor/hooks.json",
            project=".cursor/hooks.json",
            entry=_cursor,
            grouped=False,
            version=True,
        ),
        Tool(
            platform="gemini_cli",
            title="Gemini CLI",
            user=".gemini/settings.json",
            project=".gemini/settings.json",
            entry=_gemini,
        ),
        Tool(
            platform="antigravity",
            title="Antigravity CLI",
            user=".gemini/config/hooks.json",
            project=".agents/hooks.json",
            entry=_command,
            below=("penstock",),
            plain=("PreInvocation", "PostInvocation", "Stop"),
        ),
        Tool(
            platform="codex",
            title="Codex",
            user=".codex/hooks.json",
            project=".codex/hooks.json",
            entry=_command,
            folder_in="CODEX_HOME",
        ),
        Tool(
            platform="copilot",
            title="GitHub Copilot CLI",
            user=".copilot/hooks/penstock.json",
            project=".github/hooks/penstock.json",
            entry=_copilot,
            grouped=False,
            version=True,
        ),
    )
}


def tool_named(name: str) -> Tool:
    """The assistant of that name."""
    found = TOOLS.get(name.lower().replace("_", "-"))
    if found is None:
        raise InvalidOption("TOOL", name, f"one of: {', '.join(TOOLS)}")
    return found


class Change(Struct, frozen=True, kw_only=True):
    """What installing or uninstalling does to a file of settings; None stands for no file."""

    file: Path
    before: str | None
    after: str | None

    @property
    def diff(self) -> str:
        """The change as one reads it; empty if there is none."""
        before, after = (self.before or "").splitlines(), (self.after or "").splitlines()
        return "\n".join(
            difflib.unified_diff(before, after, str(self.file), str(self.file), lineterm="")
        )

    def make(self) -> None:
        """Write the file as it is to be, all at once."""
        real = os.path.realpath(self.file)
        if self.before == self.after:
            return
        if self.after is None:
            os.unlink(real)
            return
        os.makedirs(os.path.dirname(real), exist_ok=True)
        write_whole(real, self.after, 0o644)


def write_whole(path: str, text: str, mode: int) -> None:
    """Write a file so that nobody ever finds half of it; one that is there keeps its rights."""
    with suppress(FileNotFoundError):
        mode = os.stat(path).st_mode & 0o777
    descriptor, made = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".penstock-")
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(descriptor)
        os.chmod(made, mode)
        os.replace(made, path)
    except BaseException:
        os.unlink(made)
        raise


def installing(
    tool: Tool, *, project: bool = False, command: list[str] | None = None, http: str = ""
) -> Change:
    """What has to change in the settings so that every event runs the hook once."""
    if http and not (tool.over_http and http.startswith(("http://", "https://"))):
        raise InvalidOption("http", http, "a URL such as http://127.0.0.1:8000, for claude-code")
    file = tool.file(project=project)
    before = _read(file)
    text = JsonText(before or "", str(file))
    if tool.version and text.find("version") is None:
        text.add((), 1, "version")
    for n, name in enumerate(tool.below):
        if text.find(*tool.below[: n + 1]) is None:
            text.add(tool.below[:n], {}, name)
    run = command or command_line()
    wanted = {event: tool.wanted(event, run, http) for event in tool.events}
    for event in _events_of(text, tool):
        _remove(text, tool, event, keep=event in wanted)
    for event, entry in wanted.items():
        path = (*tool.below, event)
        ours = _ours(text, path)
        if text.find(*path) is None:
            text.add(tool.below, [entry], event)
        elif not ours:
            text.add(path, entry)
        elif text.value(ours[0]) != entry:
            text.put(ours[0], entry, len(path) + 1)
    return Change(file=file, before=before, after=text.text)


def uninstalling(tool: Tool, *, project: bool = False) -> Change:
    """What has to change in the settings so that nothing of ours is left in them."""
    file = tool.file(project=project)
    before = _read(file)
    if before is None:
        return Change(file=file, before=None, after=None)
    text = JsonText(before, str(file))
    for event in _events_of(text, tool):
        _remove(text, tool, event, keep=False)
    if text.text != before:
        for n in range(len(tool.below), 0, -1):
            node = text.find(*tool.below[:n])
            if node is not None and not node.items:
                text.remove(tool.below[: n - 1], node)
    left = text.value(text.root)
    after = None if text.text != before and left in ({}, {"version": 1}) else text.text
    return Change(file=file, before=before, after=after)


def http_in(tool: Tool, *, project: bool = False) -> str:
    """The server that the settings tell, if they tell one."""
    file = tool.file(project=project)
    text = JsonText(_read(file) or "", str(file))
    told = _texts(text.value(text.root))
    return next((each.partition(ROUTE)[0] for each in told if ROUTE in each), "")


def events_in(tool: Tool, *, project: bool = False) -> list[str]:
    """The events of which the settings tell the hook."""
    file = tool.file(project=project)
    return _events_of(JsonText(_read(file) or "", str(file)), tool)


def _events_of(text: JsonText, tool: Tool) -> list[str]:
    """The events in whose entries something of ours stands."""
    below = text.find(*tool.below)
    names = (below.names if below is not None else None) or ()
    return [name for name in names if _ours(text, (*tool.below, name))]


def _remove(text: JsonText, tool: Tool, event: str, *, keep: bool) -> None:
    """Take out what is ours of an event, all but the first if that is to be kept."""
    path = (*tool.below, event)
    node, ours = text.find(*path), _ours(text, path)
    if node is not None and not keep and len(ours) == len(node.items):
        text.remove(tool.below, node)
        return
    while len(ours := _ours(text, path)) > keep:
        text.remove(path, ours[-1])


def _ours(text: JsonText, path: tuple[str, ...]) -> list[Node]:
    node = text.find(*path)
    items = node.items if node is not None and node.is_list else ()
    return [item for item in items if any(map(_is_ours, _texts(text.value(item))))]


def _is_ours(text: str) -> bool:
    return any(each in text for each in OURS)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def _read(file: Path) -> str | None:
    try:
        with open(file, encoding="utf-8", newline="") as opened:
            return opened.read()
    except FileNotFoundError:
        return None


def command_line() -> list[str]:
    """What runs the hook: this interpreter, apart from its surroundings, and the launcher."""
    return [sys.executable, "-I", "-S", place(LAUNCHER)]


def write_launcher(rules: str = "", *, pseudonyms: bool = False) -> str:
    """Write the file that assistants run: it knows where this Penstock and its libraries are.

    Settings that concern a hook stand in it, too, as a hook has no time to look for them.
    """
    make_home()
    found = [find_spec(name) for name in ("penstock", "apsw", "re2")]
    folders = [spec.origin for spec in found if spec is not None and spec.origin]
    places = list(dict.fromkeys(str(Path(each).absolute().parents[1]) for each in folders))
    settings = {FOLDER: home()}
    if rules:
        settings[RULES] = os.path.abspath(os.path.expanduser(rules))
    if pseudonyms:
        settings[PSEUDONYMS] = "1"
    write_whole(
        place(LAUNCHER),
        _LAUNCHER.format(places=json.dumps(places), settings=json.dumps(settings, indent=4)),
        0o600,
    )
    return place(LAUNCHER)


_LAUNCHER = '''\
"""Assistants run this for the recorder of Penstock. `penstock hooks install` writes it."""

import os
import sys

sys.path += {places}
for name, value in {settings}.items():
    os.environ.setdefault(name, value)
try:
    from penstock.apps.recorder.hook import main
except Exception:  # Penstock is gone: nobody is to notice
    if sys.argv[1:2] in (["gemini_cli"], ["antigravity"]):
        print("{{}}")
    raise SystemExit(0) from None
main()
'''


def make_plugin(folder: str) -> Path:
    """Write a plugin for Claude Code that records; where it is."""
    from penstock import __version__

    tool = TOOLS["claude-code"]
    hooks = {event: [tool.wanted(event, command_line())] for event in tool.events}
    about = {
        "name": "penstock-recorder",
        "version": __version__,
        "description": "Records sessions locally, without secrets and personal data.",
    }
    to = Path(folder).expanduser().absolute()
    for name, document in (
        (".claude-plugin/plugin.json", about),
        ("hooks/hooks.json", {"hooks": hooks}),
    ):
        (to / name).parent.mkdir(parents=True, exist_ok=True)
        write_whole(str(to / name), json.dumps(document, indent=2) + "\n", 0o644)
    return to
