"""Trains the dictionaries that bodies of events are compressed with.

Run it as `python tools/train_dictionaries.py`.

The events are made up here, from words and shapes of the platforms' own records: nothing that a
user ever wrote is in them. A dictionary that was shipped never changes, because bodies in logs need
it: a better one has the number of a new version.
"""

import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import zstandard

from penstock.events.event import Body

FOLDER = Path(__file__).parents[1] / "src" / "penstock" / "events" / "dictionaries"
SIZE = 32 << 10
SAMPLES = 4_000
VERSION = 1
NUMBERS = {"any": 100_000, "claude_code": 100_100, "cursor": 100_200}
"""Below 32,768 and from 2**31 on, numbers belong to the registrar of zstd."""

VOCABULARY = (
    "the a of to and in is for on with that it as be this are from or by an at not we can if when "
    "which will should before after then so there add change remove move rename fix check test run "
    "build read write open close return call value name file line function class method module "
    "error message result list table column row index key user session request response server "
    "client cache queue worker job event store log time size count default option setting path "
    "directory package import type string number null true false none empty missing failed passed "
    "because instead already still only every each first last next new old same other both "
    "configuration database connection transaction query schema migration branch commit merge "
    "dependency version release documentation example behaviour performance memory timeout retry"
)
WORDS = VOCABULARY.split()
CODE = (
    "import os\nimport sys\nfrom pathlib import Path\nfrom typing import Any\n\n",
    "def {a}_{b}({c}: str, {d}: int = 0) -> None:\n    ",
    'async def {a}({b}):\n    """Return the {c} of a {d}."""\n    ',
    "class {a}{b}:\n    def __init__(self, {c}):\n        self.{c} = {c}\n",
    '    if {a} is None:\n        raise ValueError(f"{b} {{{c}}}")\n    return {d}\n',
    "    for {a} in {b}:\n        {c}.append({a})\n",
    "    with open({a}) as {b}:\n        return {b}.read()\n",
    "    assert {a} == {b}\n",
    "export function {a}({b}: string): Promise<{c}> {{\n  const {d} = await {a}({b});\n",
    "  if (!{a}) {{\n    throw new Error(`{b} ${{{c}}}`);\n  }}\n  return {d};\n}}\n",
    "const {{ {a}, {b} }} = require('./{c}');\n",
    "    try:\n        {a} = {b}({c})\n    except KeyError as error:\n        log.warning({d})\n",
)
COMMANDS = (
    "git status", "git diff HEAD~1 -- {f}", "git log --oneline -5", "ls -la {d}", "cat {f}",
    "python -m pytest {f} -q", "npm run build", "npm test -- {f}", "make test", "cargo build",
    "grep -rn \"{w}\" {d} --include=*.py", "sed -n 1,80p {f}", "find {d} -name '*.ts' | head",
)  # fmt: skip
MODELS = ("claude-sonnet-4-5-20250929", "claude-opus-4-1-20250805", "claude-haiku-4-5-20251001")
CURSOR_MODELS = ("gpt-5", "claude-4.5-sonnet", "cursor-small", "gemini-2.5-pro", "default")
BRANCHES = ("main", "develop", "feature/{w}", "fix/{w}-{v}")
HEX = "0123456789abcdef"


class Maker:
    """Makes events up; the same seed makes the same."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def events(self, platform: str, count: int) -> list[bytes]:
        """So many bodies as the log keeps them."""
        kinds: dict[str, tuple[Callable[[], Body], ...]] = {
            "claude_code": (self.tool_use, self.tool_use, self.transcript, self.prompt, self.start),
            "cursor": (self.bubble, self.bubble, self.change, self.decision, self.latency),
            "any": (self.tool_use, self.bubble, self.measure, self.measure, self.note),
        }
        made = (self.random.choice(kinds[platform])() for _ in range(count))
        return [msgspec.json.encode(body) for body in made]

    def word(self) -> str:
        return self.random.choice(WORDS)

    def text(self, least: int, most: int) -> str:
        words = [self.word() for _ in range(self.random.randint(least, most))]
        for at in range(0, len(words), 12):
            words[at] = words[at].capitalize()
            words[min(at + 11, len(words) - 1)] += self.random.choice((".", ".", ",", ":", "?"))
        return " ".join(words)

    def code(self, least: int, most: int) -> str:
        parts = self.random.choices(CODE, k=self.random.randint(least, most))
        return "".join(part.format(**{name: self.word() for name in "abcd"}) for part in parts)

    def hexed(self, size: int) -> str:
        return "".join(self.random.choices(HEX, k=size))

    def uuid(self) -> str:
        return "-".join(self.hexed(size) for size in (8, 4, 4, 4, 12))

    def path(self) -> str:
        root = self.random.choice(("/home/user/project", "/Users/dev/work/app", "/workspace"))
        inner = self.random.choice(("src", "tests", "lib", "docs", "src/components", "internal"))
        kind = self.random.choice(("py", "ts", "tsx", "md", "json", "go", "rs", "yaml"))
        return f"{root}/{inner}/{self.word()}_{self.word()}.{kind}"

    def time(self) -> str:
        month, day, hour = (self.random.randint(1, most) for most in (12, 28, 23))
        minute, second, part = (self.random.randint(0, most) for most in (59, 59, 999))
        return f"2026-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{part:03}Z"

    def metadata(self, model: str) -> dict[str, Any]:
        branch = self.random.choice(BRANCHES).format(w=self.word(), v=self.word())
        return {
            "workspace_hash": self.hexed(16),
            "project_name": self.word(),
            "uuid": self.uuid(),
            "parent_uuid": self.uuid(),
            "request_id": f"req_{self.hexed(24)}",
            "is_sidechain": 0,
            "cwd": "/home/user/project",
            "version": f"{self.random.randint(0, 2)}.{self.random.randint(0, 99)}.0",
            "git_branch": branch,
            "message_role": self.random.choice(("user", "assistant")),
            "message_model": model,
            "message_id": f"msg_{self.hexed(24)}",
            **self.usage(),
            "duration_ms": self.random.randint(5, 90_000),
        }

    def usage(self) -> dict[str, int]:
        return {
            "input_tokens": self.random.randint(3, 20_000),
            "output_tokens": self.random.randint(1, 4_000),
            "cache_creation_input_tokens": self.random.randint(0, 30_000),
            "cache_read_input_tokens": self.random.randint(0, 180_000),
        }

    def tool(self) -> tuple[str, dict[str, Any], dict[str, Any]]:
        """A tool's name, what it was given, and what it answered."""
        path = self.path()
        told = {"f": path, "d": path.rpartition("/")[0], "w": self.word()}
        command = self.random.choice(COMMANDS).format(**told)
        ran = {"stdout": self.code(0, 8), "stderr": "", "interrupted": False, "isImage": False}
        read = {"filePath": path, "content": self.code(2, 12), "numLines": 80, "startLine": 1}
        old, new = self.code(1, 4), self.code(1, 5)
        patch = [
            {"oldStart": 12, "oldLines": 6, "newStart": 12, "newLines": 9, "lines": [f"+{new}"]}
        ]
        edited = {"filePath": path, "oldString": old, "newString": new, "structuredPatch": patch}
        found = {"mode": "files_with_matches", "filenames": [path, self.path()], "numFiles": 2}
        tools: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
            "Bash": ({"command": command, "description": self.text(4, 9)}, ran),
            "Read": ({"file_path": path, "limit": 80}, {"type": "text", "file": read}),
            "Edit": ({"file_path": path, "old_string": old, "new_string": new}, edited),
            "Write": ({"file_path": path, "content": self.code(3, 12)}, {"type": "create"}),
            "Grep": ({"pattern": self.word(), "path": path, "output_mode": "content"}, found),
            "TodoWrite": ({"todos": [self.todo() for _ in range(4)]}, {"newTodos": []}),
        }
        name = self.random.choice(list(tools))
        return name, *tools[name]

    def todo(self) -> dict[str, str]:
        status = self.random.choice(("pending", "in_progress", "completed"))
        return {"content": self.text(5, 10), "status": status, "activeForm": self.text(3, 6)}

    def tool_use(self) -> Body:
        name, given, answered = self.tool()
        hook = self.random.choice(("PreToolUse", "PostToolUse"))
        payload = {
            "session_id": self.uuid(),
            "transcript_path": f"/home/user/.claude/projects/{self.word()}/{self.uuid()}.jsonl",
            "cwd": "/home/user/project",
            "permission_mode": "default",
            "hook_event_name": hook,
            "tool_name": name,
            "tool_input": given,
        }
        if hook == "PostToolUse":
            payload |= {"tool_response": answered, "tool_use_id": f"toolu_{self.hexed(24)}"}
        return Body(payload, self.metadata(self.random.choice(MODELS)), hook)

    def transcript(self) -> Body:
        name, given, _ = self.tool()
        model = self.random.choice(MODELS)
        called = {"type": "tool_use", "id": f"toolu_{self.hexed(24)}", "name": name, "input": given}
        message = {
            "model": model,
            "id": f"msg_{self.hexed(24)}",
            "type": "message",
            "role": "assistant",
            "content": [{"type": "text", "text": self.text(8, 120)}, called],
            "stop_reason": self.random.choice(("tool_use", "end_turn", None)),
            "stop_sequence": None,
            "usage": {**self.usage(), "service_tier": "standard"},
        }
        payload = {
            "parentUuid": self.uuid(),
            "isSidechain": False,
            "userType": "external",
            "cwd": "/home/user/project",
            "sessionId": self.uuid(),
            "version": "2.0.14",
            "gitBranch": "main",
            "type": "assistant",
            "message": message,
            "requestId": f"req_{self.hexed(24)}",
            "uuid": self.uuid(),
            "timestamp": self.time(),
        }
        return Body(payload, self.metadata(model), None)

    def prompt(self) -> Body:
        payload = {
            "session_id": self.uuid(),
            "transcript_path": f"/home/user/.claude/projects/{self.word()}/{self.uuid()}.jsonl",
            "cwd": "/home/user/project",
            "permission_mode": "default",
            "hook_event_name": "UserPromptSubmit",
            "prompt": self.text(6, 160),
        }
        return Body(payload, self.metadata(self.random.choice(MODELS)), "UserPromptSubmit")

    def start(self) -> Body:
        hook = self.random.choice(("SessionStart", "SessionEnd", "Stop", "SubagentStop"))
        payload = {"session_id": self.uuid(), "hook_event_name": hook, "source": "startup"}
        payload |= {"reason": "other", "stop_hook_active": False, "cwd": "/home/user/project"}
        return Body(payload, self.metadata(self.random.choice(MODELS)), hook)

    def bubble(self) -> Body:
        payload = {
            "composerId": self.uuid(),
            "bubbleId": self.uuid(),
            "type": self.random.choice((1, 2)),
            "text": self.text(6, 150),
            "richText": "",
            "tokenCount": {"inputTokens": 1_200, "outputTokens": self.random.randint(1, 900)},
            "relevantFiles": [self.path() for _ in range(self.random.randint(0, 3))],
            "codeBlocks": [{"uri": {"path": self.path()}, "content": self.code(1, 6)}],
            "capabilityType": 15,
            "unifiedMode": self.random.choice(("agent", "chat", "edit")),
            "isAgentic": True,
            "createdAt": self.time(),
            "timingInfo": {"clientStartTime": self.random.randint(1, 10**12)},
            "modelInfo": {"modelName": self.random.choice(CURSOR_MODELS)},
        }
        return Body(payload, self.metadata(self.random.choice(CURSOR_MODELS)), "afterAgentResponse")

    def change(self) -> Body:
        old, new = self.code(1, 5), self.code(1, 6)
        payload = {
            "conversation_id": self.uuid(),
            "generation_id": self.uuid(),
            "hook_event_name": "afterFileEdit",
            "file_path": self.path(),
            "edits": [{"old_string": old, "new_string": new}],
            "workspace_roots": ["/Users/dev/work/app"],
            "lines_added": new.count("\n"),
            "lines_removed": old.count("\n"),
            "language": self.random.choice(("python", "typescript", "go", "rust")),
        }
        return Body(payload, self.metadata(self.random.choice(CURSOR_MODELS)), "afterFileEdit")

    def decision(self) -> Body:
        payload = {
            "composerId": self.uuid(),
            "diffId": self.uuid(),
            "decision": self.random.choice(("accepted", "rejected", "partial")),
            "acceptance_rate": round(self.random.random(), 3),
            "file_path": self.path(),
            "suggestion": self.code(1, 4),
        }
        return Body(payload, self.metadata(self.random.choice(CURSOR_MODELS)), "acceptance")

    def latency(self) -> Body:
        payload = {
            "conversation_id": self.uuid(),
            "hook_event_name": self.random.choice(("beforeShellExecution", "beforeSubmitPrompt")),
            "command": self.random.choice(COMMANDS).format(f=self.path(), d="src", w=self.word()),
            "time_to_first_token_ms": self.random.randint(50, 4_000),
            "total_ms": self.random.randint(200, 60_000),
        }
        return Body(payload, self.metadata(self.random.choice(CURSOR_MODELS)), "latency")

    def measure(self) -> Body:
        name = f"{self.word()}.{self.word()}.{self.random.choice(('duration', 'count', 'bytes'))}"
        payload = {
            "name": name,
            "value": round(self.random.uniform(0, 5_000), 3),
            "unit": self.random.choice(("ms", "bytes", "1")),
            "labels": {"host": f"host-{self.random.randint(1, 40)}", "service": self.word()},
            "status": self.random.choice(("ok", "error", "timeout")),
            "started_at": self.time(),
            "trace_id": self.hexed(32),
            "span_id": self.hexed(16),
            "attributes": {"http.method": "GET", "http.status_code": 200, "http.route": "/api/"},
        }
        return Body(payload, {"version": "1.0.0", "uuid": self.uuid()}, None)

    def note(self) -> Body:
        payload = {
            "level": self.random.choice(("debug", "info", "warning", "error")),
            "message": self.text(6, 60),
            "logger": f"{self.word()}.{self.word()}",
            "context": {"user_id": self.hexed(12), "path": self.path(), "attempt": 1},
            "traceback": self.code(0, 4),
            "tags": [self.word(), self.word()],
            "timestamp": self.time(),
        }
        return Body(payload, {"project_name": self.word(), "duration_ms": 12}, None)


def dictionaries() -> Iterator[tuple[str, bytes]]:
    """Train one for each platform, always the same."""
    for platform, first in NUMBERS.items():
        samples = Maker(first).events(platform, SAMPLES)
        trained = zstandard.train_dictionary(SIZE, samples, dict_id=first + VERSION, level=3)
        yield platform, trained.as_bytes()


def number(data: bytes) -> int:
    """Which dictionary it is, for ever."""
    return zstandard.ZstdCompressionDict(data).dict_id()


def main() -> int:
    """Write them; the logs that need one which is replaced hold it."""
    FOLDER.mkdir(exist_ok=True)
    for platform, data in dictionaries():
        file = FOLDER / f"{platform}.zstd"
        if (
            file.exists()
            and file.read_bytes() != data
            and number(file.read_bytes()) == number(data)
        ):
            print(
                f"{file.name} has number {number(data)} already: raise VERSION for a new content."
            )
            return 1
        file.write_bytes(data)
        print(f"{file.name}: {len(data):,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
