-- name: state
SELECT state FROM recorder_states WHERE conversation_id = ? AND consumer = ?;

-- name: keep_state
INSERT INTO recorder_states (conversation_id, consumer, tenant_id, state) VALUES (?, ?, ?, ?)
ON CONFLICT (conversation_id, consumer) DO UPDATE SET state = excluded.state;

-- name: drop_state
DELETE FROM recorder_states WHERE conversation_id = ? AND consumer = ?;

-- name: turn
SELECT n, status, started_at, ended_at, prompt, answer, model, input_tokens, output_tokens,
    cache_write, cache_write_1h, cache_read, response_ms, agent_id, branch
FROM recorder_turns WHERE conversation_id = ? AND n = ?;

-- name: put_conversation
INSERT INTO recorder_conversations (
    id, tenant_id, person, platform, session_id, title, workspace_hash, project, branch, model,
    started_at, last_at, ended_at, turns, tools, failures, interruptions, changes, input_tokens,
    output_tokens, cache_write, cache_read, metadata
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET
    person = coalesce(excluded.person, recorder_conversations.person), title = excluded.title,
    workspace_hash = excluded.workspace_hash, project = excluded.project,
    branch = excluded.branch, model = excluded.model, started_at = excluded.started_at,
    last_at = excluded.last_at, ended_at = excluded.ended_at, turns = excluded.turns,
    tools = excluded.tools, failures = excluded.failures,
    interruptions = excluded.interruptions, changes = excluded.changes,
    input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens,
    cache_write = excluded.cache_write, cache_read = excluded.cache_read,
    metadata = excluded.metadata;

-- name: put_turn
INSERT INTO recorder_turns (
    conversation_id, tenant_id, n, status, started_at, ended_at, prompt, answer, model,
    input_tokens, output_tokens, cache_write, cache_write_1h, cache_read, response_ms, agent_id,
    branch
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (conversation_id, n) DO UPDATE SET
    status = excluded.status, ended_at = excluded.ended_at, prompt = excluded.prompt,
    answer = excluded.answer, model = excluded.model, input_tokens = excluded.input_tokens,
    output_tokens = excluded.output_tokens, cache_write = excluded.cache_write,
    cache_write_1h = excluded.cache_write_1h, cache_read = excluded.cache_read,
    response_ms = excluded.response_ms, branch = excluded.branch;

-- name: put_tool
INSERT INTO recorder_tools (
    conversation_id, tenant_id, n, turn, tool_use_id, name, summary, status, started_at,
    duration_ms, error, agent_id
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (conversation_id, n) DO UPDATE SET
    tool_use_id = excluded.tool_use_id, status = excluded.status,
    duration_ms = excluded.duration_ms, error = excluded.error;

-- name: put_change
INSERT INTO recorder_changes (
    conversation_id, tenant_id, n, turn, tool, file_path, kind, added, removed, at, decision
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (conversation_id, n) DO UPDATE SET decision = excluded.decision;

-- name: put_entry
INSERT INTO recorder_entries (conversation_id, tenant_id, n, turn, kind, at, text)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (conversation_id, n) DO UPDATE SET text = excluded.text;

-- name: put_commit
INSERT INTO recorder_commits (conversation_id, tenant_id, hash, branch, at, files, subject)
VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (conversation_id, hash) DO NOTHING;

-- name: add_spent
INSERT INTO recorder_spent (
    conversation_id, tenant_id, model, agent_id, input_tokens, output_tokens, cache_write,
    cache_write_1h, cache_read
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (conversation_id, model, agent_id) DO UPDATE SET
    input_tokens = recorder_spent.input_tokens + excluded.input_tokens,
    output_tokens = recorder_spent.output_tokens + excluded.output_tokens,
    cache_write = recorder_spent.cache_write + excluded.cache_write,
    cache_write_1h = recorder_spent.cache_write_1h + excluded.cache_write_1h,
    cache_read = recorder_spent.cache_read + excluded.cache_read;

-- name: drop_spent
DELETE FROM recorder_spent WHERE conversation_id = ?;

-- name: forget_tokens
UPDATE recorder_turns SET input_tokens = 0, output_tokens = 0, cache_write = 0,
    cache_write_1h = 0, cache_read = 0
WHERE conversation_id = ?;

-- name: drop_conversation
DELETE FROM recorder_conversations WHERE id = ?;

-- name: drop_turns
DELETE FROM recorder_turns WHERE conversation_id = ?;

-- name: drop_tools
DELETE FROM recorder_tools WHERE conversation_id = ?;

-- name: drop_changes
DELETE FROM recorder_changes WHERE conversation_id = ?;

-- name: drop_entries
DELETE FROM recorder_entries WHERE conversation_id = ?;

-- name: drop_commits
DELETE FROM recorder_commits WHERE conversation_id = ?;

-- name: conversation
SELECT id, tenant_id, person, platform, session_id, title, workspace_hash, project, branch, model,
    started_at, last_at, ended_at, turns, tools, failures, interruptions, changes, input_tokens,
    output_tokens, cache_write, cache_read, metadata
FROM recorder_conversations WHERE id = ?;

-- name: put_metrics
INSERT INTO recorder_metrics (
    conversation_id, tenant_id, last_at, decisions, accepted, direct, rejected, partial,
    iterations, changes, interruptions, acceptance_rate, diversity, productivity, gaps, tools
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (conversation_id) DO UPDATE SET
    last_at = excluded.last_at, decisions = excluded.decisions, accepted = excluded.accepted,
    direct = excluded.direct, rejected = excluded.rejected, partial = excluded.partial,
    iterations = excluded.iterations, changes = excluded.changes,
    interruptions = excluded.interruptions, acceptance_rate = excluded.acceptance_rate,
    diversity = excluded.diversity, productivity = excluded.productivity, gaps = excluded.gaps,
    tools = excluded.tools;

-- name: metrics
SELECT conversation_id, tenant_id, last_at, decisions, accepted, direct, rejected, partial,
    iterations, changes, interruptions, acceptance_rate, diversity, productivity, gaps, tools
FROM recorder_metrics WHERE conversation_id = ?;

-- name: drop_metrics
DELETE FROM recorder_metrics WHERE conversation_id = ?;

-- name: put_insight
INSERT INTO recorder_insights (conversation_id, tenant_id, kind, n, title, text, source, at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (conversation_id, kind, n) DO UPDATE SET
    title = excluded.title, text = excluded.text, source = excluded.source, at = excluded.at;

-- name: insights
SELECT kind, n, title, text, source, at
FROM recorder_insights WHERE conversation_id = ? ORDER BY kind, n;

-- name: drop_insights
DELETE FROM recorder_insights WHERE conversation_id = ?;

-- name: to_summarise
-- Sessions that have ended or are quiet, whose messages are all validated, and of which a model has
-- said nothing since they were last at work.
SELECT c.id, c.tenant_id, c.last_at FROM recorder_conversations c
WHERE (c.ended_at IS NOT NULL OR c.last_at < ?) AND c.last_at >= ? AND c.turns > 0
    AND NOT EXISTS (SELECT 1 FROM recorder_messages m
        WHERE m.conversation_id = c.id AND m.validated IS NULL)
    AND NOT EXISTS (SELECT 1 FROM recorder_insights i
        WHERE i.conversation_id = c.id AND i.source <> 'heuristic' AND i.at >= c.last_at)
ORDER BY c.last_at LIMIT ?;
