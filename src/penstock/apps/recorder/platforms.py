"""The assistants, and what each of their hook events means: one table for all of them.

A hook loads this in a process that must be gone within milliseconds: it imports next to nothing.
"""

from __future__ import annotations  # not evaluated: a hook need not load typing

from collections.abc import Mapping

from penstock.apps.recorder.captured import MODEL, PERSON, TOOL
from penstock.apps.recorder.light import NamedTuple, dumps

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import Any

Text = tuple[str, str]
"""Who wrote it, and the field that holds it."""


class Hook(NamedTuple):
    """What a hook event of an assistant means to us.

    `event_type` is what the log calls it, and `means` what happened, in one word for all
    assistants. `texts` are the fields that hold what a person, a model or a tool wrote. What is
    not worth its process, or would change what the assistant does, is not to `register`.
    """

    event_type: str
    means: str
    texts: tuple[Text, ...] = ()
    register: bool = True


_PROMPT = Hook("user_prompt", "prompt", ((PERSON, "prompt"),))
_BEFORE = Hook("tool_use", "tool_before")
_AFTER = Hook("tool_use", "tool_after", ((TOOL, "tool_response"),))
_FAILED = Hook("tool_use", "tool_failed", ((TOOL, "error"),))
_STOP = Hook("assistant_response", "turn_end", ((MODEL, "last_assistant_message"),))
_BEGIN = Hook("session_start", "session_start")
_END = Hook("session_end", "session_end")
_HELPER = Hook("subagent", "subagent_start")
_HELPED = Hook("subagent", "subagent_end", ((MODEL, "last_assistant_message"),))
_COMPACT = Hook("compaction", "compact_before")
_ASKED = Hook("permission", "permission_asked")
_NOTICE = Hook("notification", "notification")
_PLACE = Hook("context", "place")
_TASK = Hook("task", "task")

CLAUDE_CODE = {
    "SessionStart": _BEGIN,
    "SessionEnd": _END,
    "Setup": Hook("context", "setup"),
    "UserPromptSubmit": _PROMPT,
    # Its text is that of the prompt which it stands for.
    "UserPromptExpansion": Hook("context", "expansion"),
    "PreToolUse": _BEFORE,
    "PostToolUse": _AFTER,
    "PostToolUseFailure": _FAILED,
    # Each of its calls has told of itself.
    "PostToolBatch": Hook("tool_use", "tool_batch", register=False),
    "PermissionRequest": _ASKED,
    "PermissionDenied": Hook("acceptance_decision", "permission_denied"),
    "Notification": _NOTICE,
    "SubagentStart": _HELPER,
    "SubagentStop": _HELPED,
    "Stop": _STOP,
    "StopFailure": Hook("error", "turn_failed", ((MODEL, "last_assistant_message"),)),
    "TaskCreated": _TASK,
    "TaskCompleted": _TASK,
    "TeammateIdle": _TASK,
    "ConfigChange": _PLACE,
    "CwdChanged": _PLACE,
    "DirectoryAdded": _PLACE,
    # It only runs for files that a matcher names.
    "FileChanged": Hook("code_change", "file_changed", register=False),
    "InstructionsLoaded": Hook("context", "instructions"),
    "PostModelSwitch": Hook("model_switch", "model_switch"),
    # It blocks, and runs twice.
    "PreModelSwitch": Hook("model_switch", "model_switch_before", register=False),
    # A hook takes the place of the assistant's own way to make and remove one.
    "WorktreeCreate": Hook("context", "place", register=False),
    "WorktreeRemove": Hook("context", "place", register=False),
    "PreCompact": _COMPACT,
    "PostCompact": Hook("compaction", "compact_after", ((MODEL, "compact_summary"),)),
    "Elicitation": Hook("elicitation", "question"),
    "ElicitationResult": Hook("elicitation", "answer", ((PERSON, "content"),)),
    # It runs while text streams.
    "MessageDisplay": Hook("trace", "display", register=False),
}

CURSOR = {
    "sessionStart": _BEGIN,
    "sessionEnd": _END,
    "beforeSubmitPrompt": _PROMPT,
    "preToolUse": _BEFORE,
    "postToolUse": _AFTER,
    "postToolUseFailure": Hook("tool_use", "tool_failed", ((TOOL, "error_message"),)),
    "subagentStart": _HELPER,
    "subagentStop": _HELPED,
    # Each of these stands beside preToolUse or postToolUse and tells more of it.
    "beforeShellExecution": Hook("tool_use", "shell_before"),
    "afterShellExecution": Hook("tool_use", "shell_after", ((TOOL, "output"),)),
    "beforeMCPExecution": Hook("tool_use", "mcp_before"),
    "afterMCPExecution": Hook("tool_use", "mcp_after", ((TOOL, "result_json"),)),
    # Whole files, which the tool that reads them tells of as well.
    "beforeReadFile": Hook("tool_use", "read_before", register=False),
    "afterFileEdit": Hook("code_change", "edit"),
    "afterAgentResponse": Hook("assistant_response", "answer", ((MODEL, "text"),)),
    "afterAgentThought": Hook("trace", "thought", ((MODEL, "text"),)),
    "preCompact": _COMPACT,
    "stop": Hook("completion", "turn_end"),
    # Completion in the editor, outside any conversation.
    "beforeTabFileRead": Hook("tool_use", "read_before", register=False),
    "afterTabFileEdit": Hook("code_change", "tab_edit"),
    # It has no session.
    "workspaceOpen": Hook("context", "place", register=False),
}

GEMINI_CLI = {
    "SessionStart": _BEGIN,
    "SessionEnd": _END,
    "BeforeAgent": _PROMPT,
    "AfterAgent": Hook("assistant_response", "turn_end", ((MODEL, "prompt_response"),)),
    "BeforeTool": _BEFORE,
    "AfterTool": _AFTER,
    # The whole conversation, again and again.
    "BeforeModel": Hook("trace", "model_before", register=False),
    "BeforeToolSelection": Hook("trace", "model_before", register=False),
    "AfterModel": Hook("trace", "display", register=False),
    "Notification": _NOTICE,
    "PreCompress": _COMPACT,
}

ANTIGRAVITY = {
    "SessionStart": Hook("session_start", "session_start", register=False),
    # What answers it has to decide whether the tool may run.
    "PreToolUse": Hook("tool_use", "tool_before", register=False),
    "PostToolUse": Hook("tool_use", "tool_after", ((TOOL, "tool_response"), (TOOL, "error"))),
    # Each call of the model; a turn begins with number 0.
    "PreInvocation": Hook("trace", "model_before", ((PERSON, "prompt"),)),
    "PostInvocation": Hook("assistant_response", "answer", ((MODEL, "response"),)),
    "Stop": _STOP,
}

CODEX = {
    "SessionStart": _BEGIN,
    "SessionEnd": _END,
    "UserPromptSubmit": _PROMPT,
    "PreToolUse": _BEFORE,
    "PermissionRequest": _ASKED,
    "PostToolUse": _AFTER,
    "Stop": _STOP,
    "PreCompact": _COMPACT,
    "PostCompact": Hook("compaction", "compact_after", ((MODEL, "compact_summary"),)),
    "SubagentStart": _HELPER,
    "SubagentStop": _HELPED,
    # The older way, `notify`: a whole turn at its end.
    "agent-turn-complete": Hook(
        "assistant_response",
        "turn",
        ((PERSON, "input-messages"), (MODEL, "last-assistant-message")),
        register=False,
    ),
}

COPILOT = {
    "sessionStart": Hook("session_start", "session_start", ((PERSON, "initial_prompt"),)),
    "sessionEnd": _END,
    "userPromptSubmitted": _PROMPT,
    # The same prompt, once more.
    "userPromptTransformed": Hook("context", "expansion", register=False),
    "preToolUse": _BEFORE,
    "preMcpToolCall": Hook("tool_use", "mcp_before", register=False),
    "postToolUse": _AFTER,
    "postToolUseFailure": _FAILED,
    "permissionRequest": _ASKED,
    "agentStop": _STOP,
    "subagentStart": _HELPER,
    "subagentStop": _HELPED,
    "errorOccurred": Hook("error", "turn_failed"),
    "notification": _NOTICE,
    "preCompact": _COMPACT,
}

HOOKS: Mapping[str, Mapping[str, Hook]] = {
    "claude_code": CLAUDE_CODE,
    "cursor": CURSOR,
    "gemini_cli": GEMINI_CLI,
    "antigravity": ANTIGRAVITY,
    "codex": CODEX,
    "copilot": COPILOT,
}

UNKNOWN = Hook("trace", "unknown")
"""A hook event that the table does not have is kept all the same."""

TYPES = {
    "permission": 2,
    "notification": 4,
    "compaction": 2,
    "subagent": 2,
    "context": 4,
    "task": 3,
    "error": 2,
    "model_switch": 3,
    "elicitation": 2,
    "redaction": 1,
    "validation": 3,
    "extraction": 3,
    "approval": 1,
    "learning_edit": 1,
    "supersession": 1,
    "revocation": 1,
    "model_answer": 2,
    "git_commit": 3,
}
"""Types of our own beside those of the log, with their priorities."""

SAME = {
    "sessionStart": "SessionStart",
    "sessionEnd": "SessionEnd",
    "userPromptSubmitted": "UserPromptSubmit",
    "preToolUse": "PreToolUse",
    "postToolUse": "PostToolUse",
    "postToolUseFailure": "PostToolUseFailure",
    "permissionRequest": "PermissionRequest",
    "agentStop": "Stop",
    "subagentStart": "SubagentStart",
    "subagentStop": "SubagentStop",
    "errorOccurred": "ErrorOccurred",
    "notification": "Notification",
    "preCompact": "PreCompact",
}
"""What Copilot calls an event in one spelling and in the other, which is also Claude Code's."""

_COPILOT_PASCAL = {pascal: camel for camel, pascal in SAME.items()}

ALIASES: Mapping[str, tuple[str, ...]] = {
    "session_id": (
        *("session_id", "sessionId", "conversation_id", "conversationId"),
        *("thread_id", "thread-id"),
    ),
    "hook_event_name": ("hook_event_name", "hookEventName", "hookName", "type"),
    "turn_id": ("turn_id", "turn-id", "turnId", "generation_id", "prompt_id"),
    "tool_use_id": ("tool_use_id", "toolUseId", "tool_call_id", "toolCallId", "stepIdx"),
    "tool_name": ("tool_name", "toolName", "toolCall.name"),
    "tool_input": ("tool_input", "toolInput", "toolArgs", "tool_args", "toolCall.args"),
    "tool_response": (
        *("tool_response", "toolResponse", "toolResult", "tool_result", "tool_output"),
        *("result_json", "output"),
    ),
    "prompt": ("prompt", "userPrompt", "user_prompt"),
    "initial_prompt": ("initial_prompt", "initialPrompt"),
    "response": ("response", "prompt_response", "last_assistant_message"),
    "last_assistant_message": (
        *("last_assistant_message", "lastAssistantMessage", "last-assistant-message"),
        *("response", "summary"),
    ),
    "error": ("error", "error_message", "errorMessage"),
    "transcript_path": ("transcript_path", "transcriptPath"),
    "agent_id": ("agent_id", "agentId", "subagent_id", "subagentId"),
    "agent_type": ("agent_type", "agentType", "subagent_type", "agentName"),
    "duration_ms": ("duration_ms", "durationMs", "duration"),
    "model": ("model", "to_model"),
    "workspaces": ("workspace_roots", "workspacePaths"),
    "version": ("version", "cursor_version"),
}
"""A field by our name, and by those that assistants have for it."""


def hook_of(platform: str, hook_type: str) -> Hook:
    """What a hook event means; one that is not known is kept as a trace."""
    hooks = HOOKS.get(platform, {})
    found = hooks.get(hook_type)
    if found is None and platform == "copilot":
        found = hooks.get(_COPILOT_PASCAL.get(hook_type, ""))
    return found or UNKNOWN


def value(payload: Mapping[str, Any], name: str) -> Any:
    """A field of a hook's payload by our name for it, whatever the assistant calls it."""
    for alias in ALIASES.get(name, (name,)):
        field, _, within = alias.partition(".")
        found = payload.get(field)
        if within and isinstance(found, Mapping):
            found = found.get(within)
        if found is not None:
            return found
    return None


def text_of(found: Any) -> str:
    """What a person would read of a field: texts as they are, of results what a tool wrote."""
    if found is None:
        return ""
    if isinstance(found, str):
        return found
    if isinstance(found, list | tuple):
        return "\n".join(text for text in map(text_of, found) if text)
    if isinstance(found, Mapping):
        told = [text_of(found[name]) for name in _WRITTEN if name in found]
        if any(told):
            return "\n".join(text for text in told if text)
        return dumps(found)
    return str(found)


_WRITTEN = (
    *("stdout", "stderr", "output", "text", "content", "result", "file", "message", "error"),
    *("textResultForLlm", "llmContent"),
)
"""Where tools put what they wrote."""
