-- name: append
INSERT INTO events_log (
    event_id, timestamp, ingested_at, event_type, session_id, platform, tenant_id, person, slot,
    priority, workspace_hash, project_name, uuid, parent_uuid, request_id, agent_id,
    is_sidechain, cwd, version, git_branch, message_role, message_model, message_id,
    input_tokens, output_tokens, cache_creation_input_tokens, cache_read_input_tokens,
    duration_ms, tokens_used, tool_calls_count, codec, event_data
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (event_id, timestamp, tenant_id) DO NOTHING;

-- name: known
SELECT sequence, codec, event_data, event_type, session_id, platform FROM events_log
WHERE event_id = ? AND timestamp = ? AND tenant_id = ?;

-- name: keep_dictionary
INSERT INTO events_dictionaries (id, platform, data) VALUES (?, ?, ?) ON CONFLICT (id) DO NOTHING;

-- name: dictionary
SELECT data FROM events_dictionaries WHERE id = ?;

-- name: by_id
{part event}
WHERE event_id = :event_id AND codec <> 'erased'
    AND (CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant)
ORDER BY timestamp LIMIT 1;

-- name: of_session
{part event} WHERE session_id = :session_id AND {part wanted};

-- name: of_tenant
{part event} WHERE tenant_id = :tenant AND tenant_id <> '' AND {part wanted};

-- name: within
{part event} WHERE timestamp >= :since AND timestamp < :until AND {part wanted};

-- name: every
{part event} WHERE {part wanted};

-- name: latest
SELECT coalesce(max(sequence), 0) FROM events_log;

-- part: event
SELECT sequence, event_id, timestamp, ingested_at, event_type, session_id, platform, tenant_id,
    person, slot, priority, codec, event_data
FROM events_log

-- part: wanted
sequence > :after AND codec <> 'erased'
    AND (CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant)
    AND (CAST(:event_type AS TEXT) IS NULL OR event_type = :event_type)
    AND (CAST(:platform AS TEXT) IS NULL OR platform = :platform)
ORDER BY sequence LIMIT :limit
