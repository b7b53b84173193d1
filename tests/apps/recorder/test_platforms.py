"""Every event of every assistant, as it is documented, becomes an event of the log."""

from typing import Any

import pytest

from penstock.apps.recorder.capture import capture, recognised, stub, without_private
from penstock.apps.recorder.captured import Captured, Redaction, twins
from penstock.apps.recorder.platforms import HOOKS, TYPES, UNKNOWN, hook_of, text_of
from penstock.events.columns import PRIORITIES
from tests.apps.recorder.payloads import EVENTS, SESSION, told

NOW = 1_794_830_400_500


def as_it_is(found: Any) -> tuple[Any, tuple[Redaction, ...]]:
    """Sanitise nothing."""
    return found, ()


def captured(platform: str, event: str, now: int = NOW, **changed: Any) -> Captured:
    """What a hook captures of a documented event."""
    return capture(platform, event, {**told(platform, event), **changed}, now, as_it_is)


def test_the_table_has_every_documented_event_and_no_other() -> None:
    assert {(platform, event) for platform, events in HOOKS.items() for event in events} == {
        *EVENTS
    }


def test_every_type_is_one_that_the_log_knows_or_that_we_registered() -> None:
    types = {hook.event_type for events in HOOKS.values() for hook in events.values()}
    assert types <= {*PRIORITIES, *TYPES}
    assert not {*PRIORITIES} & {*TYPES}


@pytest.mark.parametrize(("platform", "event"), EVENTS)
def test_an_event_is_captured_in_its_session_by_its_own_name(platform: str, event: str) -> None:
    found = captured(platform, event)
    hook = HOOKS[platform][event]
    assert (found.platform, found.session_id, found.hook_type) == (platform, SESSION, event)
    assert (found.event_type, found.metadata["means"]) == (hook.event_type, hook.means)
    assert found.metadata["project_name"] == "shop"
    assert {**told(platform, event), **found.payload} == found.payload


MESSAGES = [
    ("claude_code", "UserPromptSubmit", "user", "Make the tests pass"),
    ("claude_code", "PostToolUse", "tool", "2 passed"),
    ("claude_code", "PostToolUseFailure", "tool", "exit code 1"),
    ("claude_code", "Stop", "assistant", "All tests pass"),
    ("claude_code", "SubagentStop", "assistant", "Found it in shop/cart.py"),
    ("claude_code", "PostCompact", "assistant", "We fixed the cart"),
    ("claude_code", "ElicitationResult", "user", "shop"),
    ("cursor", "beforeSubmitPrompt", "user", "Make the tests pass"),
    ("cursor", "postToolUse", "tool", '{"output": "cart.py"}'),
    ("cursor", "postToolUseFailure", "tool", "not found"),
    ("cursor", "afterShellExecution", "tool", "cart.py"),
    ("cursor", "afterMCPExecution", "tool", '{"hits": 3}'),
    ("cursor", "afterAgentResponse", "assistant", "All tests pass"),
    ("gemini_cli", "BeforeAgent", "user", "Make the tests pass"),
    ("gemini_cli", "AfterAgent", "assistant", "All tests pass"),
    ("gemini_cli", "AfterTool", "tool", "total = 0"),
    ("antigravity", "PostToolUse", "tool", "exit status 1"),
    ("antigravity", "PostInvocation", "assistant", "All tests pass"),
    ("codex", "UserPromptSubmit", "user", "Make the tests pass"),
    ("codex", "PostToolUse", "tool", "2 passed"),
    ("codex", "Stop", "assistant", "All tests pass"),
    ("copilot", "userPromptSubmitted", "user", "Make the tests pass"),
    ("copilot", "postToolUse", "tool", "2 passed"),
]


@pytest.mark.parametrize(("platform", "event", "role", "content"), MESSAGES)
def test_what_somebody_wrote_is_a_message(
    platform: str, event: str, role: str, content: str
) -> None:
    [message] = captured(platform, event).messages
    assert (message.role, message.content) == (role, content)


@pytest.mark.parametrize(
    "event", ["PreToolUse", "SessionStart", "Notification", "PermissionRequest"]
)
def test_what_nobody_wrote_is_no_message(event: str) -> None:
    assert captured("claude_code", event).messages == ()


def test_the_older_way_of_codex_tells_a_whole_turn() -> None:
    found = captured("codex", "agent-turn-complete")
    assert [(m.role, m.content) for m in found.messages] == [
        ("user", "Make the tests pass"),
        ("assistant", "All tests pass"),
    ]


def test_an_unknown_event_is_kept() -> None:
    payload = {"session_id": SESSION, "hook_event_name": "Moonrise", "phase": "full"}
    found = capture("claude_code", "", payload, NOW, as_it_is)
    assert (found.hook_type, found.event_type) == ("Moonrise", UNKNOWN.event_type)
    assert found.payload["phase"] == "full"


def test_what_must_not_be_registered_is_not() -> None:
    left_out = {event for event, hook in HOOKS["claude_code"].items() if not hook.register}
    assert {"MessageDisplay", "PreModelSwitch", "WorktreeCreate"} <= left_out
    assert not HOOKS["gemini_cli"]["AfterModel"].register
    # Who answers it decides whether the tool runs.
    assert not HOOKS["antigravity"]["PreToolUse"].register


@pytest.mark.parametrize(("platform", "event"), EVENTS)
def test_an_assistant_that_runs_the_hook_of_claude_code_is_recognised(
    platform: str, event: str
) -> None:
    payload = told(platform, event)
    if platform != "antigravity" and event != "agent-turn-complete":
        assert recognised("claude_code", payload) == platform


def test_codex_is_recognised_without_a_transcript() -> None:
    payload = {**told("codex", "PostToolUse"), "transcript_path": None}
    assert recognised("claude_code", payload) == "codex"


def test_an_event_that_two_hooks_tell_of_is_the_same_event() -> None:
    own = captured("codex", "PostToolUse")
    through_claude = capture("claude_code", "", told("codex", "PostToolUse"), NOW + 40, as_it_is)
    assert own.event_id == through_claude.event_id


def test_copilot_is_known_in_either_spelling() -> None:
    camel = captured("copilot", "preToolUse")
    pascal = {
        "session_id": SESSION,
        "timestamp": "2026-11-16T12:00:00.250Z",
        "cwd": "/srv/shop",
        "hook_event_name": "PreToolUse",
        "tool_name": "bash",
        "tool_input": {"command": "pytest -q"},
    }
    found = capture("claude_code", "PreToolUse", pascal, NOW, as_it_is)
    assert (found.platform, found.event_id) == ("copilot", camel.event_id)
    assert hook_of("copilot", "PreToolUse") == hook_of("copilot", "preToolUse")


def test_a_prompt_that_is_repeated_later_is_another_event() -> None:
    first = captured("claude_code", "UserPromptSubmit")
    again = captured("claude_code", "UserPromptSubmit", now=NOW + 60_000)
    assert first.event_id != again.event_id
    assert not twins(again)["first"] <= first.event_id <= twins(again)["last"]


def test_a_prompt_that_a_second_hook_tells_of_lies_among_the_twins() -> None:
    first = captured("claude_code", "UserPromptSubmit")
    second = captured("claude_code", "UserPromptSubmit", now=NOW + 300)
    assert twins(second)["first"] <= first.event_id <= twins(second)["last"]


def test_private_parts_are_never_captured() -> None:
    prompt = "Use <private>the old name</private>that, and <private>this to the end"
    found = captured("claude_code", "UserPromptSubmit", prompt=prompt)
    assert found.payload["prompt"] == found.messages[0].content == "Use that, and "
    assert without_private("a<private>b</private>c<private>d</private>") == "ac"


def test_a_long_message_is_whole_and_the_event_holds_its_beginning() -> None:
    found = captured("claude_code", "UserPromptSubmit", prompt="x" * 500_000, extra="y" * 500_000)
    assert found.messages[0].content == "x" * 500_000
    assert len(found.payload["prompt"]) < 200_100
    assert found.payload["prompt"].endswith("[300000 more characters]")
    assert len(found.payload["extra"]) < 200_100


def test_what_no_store_takes_is_replaced() -> None:
    found = captured("claude_code", "UserPromptSubmit", prompt="a\0b\ud800c")
    assert found.messages[0].content == "a\ufffdb?c"


def test_what_is_nested_too_deeply_is_left_out() -> None:
    deep: Any = "bottom"
    for _ in range(100):
        deep = [deep]
    found = captured("claude_code", "UserPromptSubmit", extra=deep)
    assert "bottom" not in str(found.payload)


def test_a_stub_holds_nothing_of_what_it_stands_for() -> None:
    payload = {"session_id": "Ada Lovelace", "hook_event_name": "Ada", "prompt": "Ada"}
    found = stub("claude_code", "UserPromptSubmit", payload, NOW, "it could not be read")
    assert "Ada" not in str(found)
    assert stub("claude_code", "", {"session_id": SESSION}, NOW, "").session_id == SESSION


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ("plain", "plain"),
        ([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], "one\ntwo"),
        ({"type": "text", "file": {"filePath": "a", "content": "inside"}}, "inside"),
        ({"stdout": "out", "stderr": "err"}, "out\nerr"),
        ({"count": 3}, '{"count":3}'),
        (None, ""),
        (True, "True"),
    ],
)
def test_of_a_result_that_is_taken_which_a_person_would_read(found: Any, text: str) -> None:
    assert text_of(found) == text
