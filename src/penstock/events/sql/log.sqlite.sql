-- name: hold
-- One writer at a time has the file.
SELECT 1;

-- name: begin
-- The last sequence that was given, when the last archived event was, and how many erasures there
-- were.
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'events_log'), 0),
    {part archived_until}, {part erasures};

-- name: append_hundred
INSERT INTO events_log (
    event_id, timestamp, ingested_at, event_type, session_id, platform, tenant_id, person, slot,
    priority, workspace_hash, project_name, uuid, parent_uuid, request_id, agent_id,
    is_sidechain, cwd, version, git_branch, message_role, message_model, message_id,
    input_tokens, output_tokens, cache_creation_input_tokens, cache_read_input_tokens,
    duration_ms, tokens_used, tool_calls_count, codec, event_data
)
VALUES {100 times (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)}
ON CONFLICT (event_id, timestamp, tenant_id) DO NOTHING;

-- part: among
(:types IS NULL OR instr(:types, ' ' || event_type || ' ') > 0)
