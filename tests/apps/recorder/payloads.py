"""What every hook of every assistant is told, in the documented shape, by platform and event."""

from typing import Any

SESSION = "5d3c9c1e-8a57-4d0e-9a53-3f6d1f0c7a10"
CLAUDE = {
    "session_id": SESSION,
    "transcript_path": "/home/ada/.claude/projects/-srv-shop/session.jsonl",
    "cwd": "/srv/shop",
    "permission_mode": "default",
}
BASH = {"tool_name": "Bash", "tool_input": {"command": "pytest -q"}, "tool_use_id": "toolu_01"}
TASK = {"task_id": "1", "task_subject": "Tests", "task_description": "Write them"}

CLAUDE_CODE: dict[str, dict[str, Any]] = {
    "SessionStart": {"source": "startup", "model": "claude-opus-4-8"},
    "Setup": {"trigger": "init"},
    "UserPromptSubmit": {"prompt": "Make the tests pass"},
    "UserPromptExpansion": {
        "expansion_type": "command",
        "command_name": "review",
        "command_args": "all",
        "command_source": "project",
        "prompt": "Review all",
    },
    "PreToolUse": BASH,
    "PermissionRequest": {**BASH, "permission_suggestions": []},
    "PermissionDenied": {**BASH, "reason": "denied by rule"},
    "PostToolUse": {
        **BASH,
        "tool_response": {"stdout": "2 passed", "stderr": "", "interrupted": False},
        "duration_ms": 812,
    },
    "PostToolUseFailure": {**BASH, "error": "exit code 1", "is_interrupt": False},
    "PostToolBatch": {"tool_calls": [{**BASH, "tool_response": "2 passed"}]},
    "Notification": {"message": "Waiting", "title": "Claude", "notification_type": "idle_prompt"},
    "SubagentStart": {"agent_id": "a1", "agent_type": "Explore"},
    "SubagentStop": {
        "agent_id": "a1",
        "agent_type": "Explore",
        "agent_transcript_path": "/home/ada/.claude/projects/x/subagents/agent-a1.jsonl",
        "last_assistant_message": "Found it in shop/cart.py",
        "stop_hook_active": False,
    },
    "Stop": {
        "stop_hook_active": False,
        "last_assistant_message": "All tests pass",
        "background_tasks": [],
        "session_crons": [],
    },
    "StopFailure": {
        "error": "rate_limit",
        "error_details": "429",
        "last_assistant_message": "API error",
    },
    "TaskCreated": TASK,
    "TaskCompleted": {**TASK, "teammate_name": "b", "team_name": "t"},
    "TeammateIdle": {"teammate_name": "b", "team_name": "t"},
    "ConfigChange": {"source": "user_settings", "file_path": "/home/ada/.claude/settings.json"},
    "CwdChanged": {"old_cwd": "/srv/shop", "new_cwd": "/srv/shop/api"},
    "DirectoryAdded": {"directory": "/srv/lib", "source": "command"},
    "FileChanged": {"file_path": "/srv/shop/.env", "event": "change"},
    "InstructionsLoaded": {"file_path": "CLAUDE.md", "memory_type": "Project", "load_reason": "x"},
    "PreModelSwitch": {"from_model": "opus", "to_model": "haiku", "source": "user"},
    "PostModelSwitch": {
        "from_model": "opus",
        "to_model": "haiku",
        "requested_model": "haiku",
        "source": "user",
    },
    "WorktreeCreate": {"name": "fix"},
    "WorktreeRemove": {"worktree_path": "/srv/shop-fix"},
    "PreCompact": {"trigger": "auto", "custom_instructions": ""},
    "PostCompact": {"trigger": "auto", "compact_summary": "We fixed the cart"},
    "Elicitation": {
        "mcp_server_name": "tracker",
        "message": "Which project?",
        "mode": "form",
        "requested_schema": {},
    },
    "ElicitationResult": {
        "mcp_server_name": "tracker",
        "action": "accept",
        "content": {"text": "shop"},
        "mode": "form",
        "elicitation_id": "e1",
    },
    "SessionEnd": {"reason": "prompt_input_exit"},
    "MessageDisplay": {"text": "All"},
}

CURSOR_COMMON = {
    "conversation_id": SESSION,
    "generation_id": "g-1",
    "model": "gpt-5",
    "cursor_version": "2.4.1",
    "workspace_roots": ["/srv/shop"],
    "user_email": "ada" + "@" + "shop.example.org",
    "transcript_path": None,
}
SHELL = {"tool_name": "Shell", "tool_input": '{"command": "ls"}', "tool_use_id": "tool_9"}

CURSOR: dict[str, dict[str, Any]] = {
    "sessionStart": {"composer_mode": "agent", "is_background_agent": False},
    "sessionEnd": {"reason": "completed", "final_status": "ok", "duration_ms": 90_000},
    "beforeSubmitPrompt": {"prompt": "Make the tests pass", "attachments": []},
    "preToolUse": {**SHELL, "cwd": "/srv/shop"},
    "postToolUse": {**SHELL, "tool_output": '{"output": "cart.py"}', "duration": 40},
    "postToolUseFailure": {**SHELL, "error_message": "not found", "failure_type": "error"},
    "subagentStart": {"subagent_id": "s1", "subagent_type": "explore", "task": "Look"},
    "subagentStop": {"subagent_type": "explore", "status": "completed", "summary": "Found it"},
    "beforeShellExecution": {"command": "ls", "cwd": "/srv/shop"},
    "afterShellExecution": {"command": "ls", "output": "cart.py", "duration": 40},
    "beforeMCPExecution": {"tool_name": "search", "tool_input": "{}", "url": "https://x.example"},
    "afterMCPExecution": {
        "tool_name": "search",
        "tool_input": "{}",
        "result_json": '{"hits": 3}',
        "duration": 12,
    },
    "beforeReadFile": {"file_path": "/srv/shop/cart.py", "content": "total = 0"},
    "afterFileEdit": {
        "file_path": "/srv/shop/cart.py",
        "edits": [{"old_string": "0", "new_string": "1"}],
    },
    "afterAgentResponse": {"text": "All tests pass"},
    "afterAgentThought": {"text": "The cart is empty", "duration_ms": 300},
    "preCompact": {"trigger": "auto", "context_usage_percent": 91},
    "stop": {"status": "completed", "loop_count": 0},
    "beforeTabFileRead": {"file_path": "/srv/shop/cart.py", "content": "total = 0"},
    "afterTabFileEdit": {
        "file_path": "/srv/shop/cart.py",
        "edits": [{"old_string": "0", "new_string": "1"}],
    },
    "workspaceOpen": {},
}

GEMINI_COMMON = {
    "session_id": SESSION,
    "transcript_path": "/home/ada/.gemini/tmp/x/chats/session.json",
    "cwd": "/srv/shop",
    "timestamp": "2026-11-16T12:00:00.250Z",
}
READ = {"tool_name": "read_file", "tool_input": {"path": "cart.py"}}

GEMINI_CLI: dict[str, dict[str, Any]] = {
    "SessionStart": {"source": "startup"},
    "SessionEnd": {"reason": "exit"},
    "BeforeAgent": {"prompt": "Make the tests pass"},
    "AfterAgent": {
        "prompt": "Make the tests pass",
        "prompt_response": "All tests pass",
        "stop_hook_active": False,
    },
    "BeforeTool": {**READ, "mcp_context": {}},
    "AfterTool": {**READ, "tool_response": {"llmContent": "total = 0", "returnDisplay": ""}},
    "BeforeModel": {"llm_request": {"messages": []}},
    "AfterModel": {"llm_request": {}, "llm_response": {}},
    "BeforeToolSelection": {"llm_request": {}},
    "Notification": {"notification_type": "ToolPermission", "message": "?", "details": {}},
    "PreCompress": {"trigger": "auto"},
}

ANTIGRAVITY_COMMON = {
    "conversationId": SESSION,
    "workspacePaths": ["/srv/shop"],
    "transcriptPath": "/home/ada/.gemini/antigravity-cli/x.jsonl",
}
RUN = {"toolCall": {"name": "run_command", "args": {"CommandLine": "ls"}}, "stepIdx": 4}

ANTIGRAVITY: dict[str, dict[str, Any]] = {
    "SessionStart": {},
    "PreToolUse": RUN,
    "PostToolUse": {**RUN, "error": "exit status 1"},
    "PreInvocation": {"invocationNum": 0},
    "PostInvocation": {"invocationNum": 0, "response": "All tests pass"},
    "Stop": {"executionNum": 1, "terminationReason": "done", "fullyIdle": True},
}

CODEX_COMMON = {
    "session_id": SESSION,
    "turn_id": "turn-3",
    "transcript_path": "/home/ada/.codex/sessions/2026/11/16/rollout.jsonl",
    "cwd": "/srv/shop",
    "model": "gpt-5.2-codex",
    "permission_mode": "default",
}

CODEX: dict[str, dict[str, Any]] = {
    "SessionStart": {"source": "startup"},
    "SessionEnd": {"reason": "exit"},
    "UserPromptSubmit": {"prompt": "Make the tests pass"},
    "PreToolUse": BASH,
    "PermissionRequest": BASH,
    "PostToolUse": {**BASH, "tool_response": "2 passed"},
    "Stop": {"stop_hook_active": False, "last_assistant_message": "All tests pass"},
    "PreCompact": {"trigger": "auto"},
    "PostCompact": {"trigger": "auto"},
    "SubagentStart": {"agent_id": "a1", "agent_type": "worker"},
    "SubagentStop": {
        "agent_id": "a1",
        "agent_transcript_path": "/home/ada/.codex/sessions/a1.jsonl",
        "last_assistant_message": "Found it",
    },
}
CODEX_NOTIFY: dict[str, Any] = {
    "type": "agent-turn-complete",
    "thread-id": SESSION,
    "turn-id": "turn-3",
    "cwd": "/srv/shop",
    "client": "codex-tui",
    "input-messages": ["Make the tests pass"],
    "last-assistant-message": "All tests pass",
}

COPILOT_COMMON = {"sessionId": SESSION, "timestamp": 1_794_830_400_250, "cwd": "/srv/shop"}
SH = {"toolName": "bash", "toolArgs": {"command": "pytest -q"}}

COPILOT: dict[str, dict[str, Any]] = {
    "sessionStart": {"source": "new", "initialPrompt": "Make the tests pass"},
    "sessionEnd": {"reason": "complete"},
    "userPromptSubmitted": {"prompt": "Make the tests pass"},
    "userPromptTransformed": {"prompt": "Make the tests pass."},
    "preToolUse": SH,
    "preMcpToolCall": SH,
    "postToolUse": {
        **SH,
        "toolResult": {"resultType": "success", "textResultForLlm": "2 passed"},
    },
    "postToolUseFailure": {**SH, "error": "exit code 1"},
    "permissionRequest": SH,
    "agentStop": {"transcriptPath": "/home/ada/.copilot/x.jsonl", "stopReason": "end_turn"},
    "subagentStart": {"agentName": "explore"},
    "subagentStop": {"agentName": "explore", "stopReason": "end_turn"},
    "errorOccurred": {"error": {"message": "rate limit", "name": "Error"}, "recoverable": True},
    "notification": {"message": "Waiting", "title": "Copilot", "notification_type": "idle"},
    "preCompact": {"trigger": "auto", "customInstructions": ""},
}


def told(platform: str, event: str) -> dict[str, Any]:
    """What a hook is told of an event; those whose payload does not name it get it as a word."""
    match platform:
        case "claude_code":
            return {**CLAUDE, "hook_event_name": event, **CLAUDE_CODE[event]}
        case "cursor":
            return {**CURSOR_COMMON, "hook_event_name": event, **CURSOR[event]}
        case "gemini_cli":
            return {**GEMINI_COMMON, "hook_event_name": event, **GEMINI_CLI[event]}
        case "antigravity":
            return {**ANTIGRAVITY_COMMON, **ANTIGRAVITY[event]}
        case "codex" if event == "agent-turn-complete":
            return CODEX_NOTIFY
        case "codex":
            return {**CODEX_COMMON, "hook_event_name": event, **CODEX[event]}
        case _:
            return {**COPILOT_COMMON, **COPILOT[event]}


EVENTS = [
    (platform, event)
    for platform, events in (
        ("claude_code", CLAUDE_CODE),
        ("cursor", CURSOR),
        ("gemini_cli", GEMINI_CLI),
        ("antigravity", ANTIGRAVITY),
        ("codex", [*CODEX, "agent-turn-complete"]),
        ("copilot", COPILOT),
    )
    for event in events
]
"""Every event that is documented."""
