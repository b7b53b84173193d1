-- name: append
-- Answers with the sequence, or nothing if the event is there already.
INSERT INTO events_log (
    event_id, timestamp, ingested_at, event_type, session_id, platform, tenant_id, person, slot,
    priority, workspace_hash, project_name, uuid, parent_uuid, request_id, agent_id,
    is_sidechain, cwd, version, git_branch, message_role, message_model, message_id,
    input_tokens, output_tokens, cache_creation_input_tokens, cache_read_input_tokens,
    duration_ms, tokens_used, tool_calls_count, codec, event_data
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (event_id, timestamp) DO NOTHING
RETURNING sequence;

-- name: lock
SELECT 1;

-- name: one
{part event}
WHERE event_id = :event_id ORDER BY timestamp LIMIT 2;

-- name: known
SELECT sequence, codec, event_data, event_type, session_id, platform FROM events_log
WHERE event_id = ? AND timestamp = ?;

-- name: after
{part event}
WHERE sequence > :after AND (:tenant IS NULL OR tenant_id = :tenant)
ORDER BY sequence LIMIT :limit;

-- part: event
SELECT sequence, event_id, timestamp, ingested_at, event_type, session_id, platform, tenant_id,
    person, slot, priority, codec, event_data
FROM events_log
