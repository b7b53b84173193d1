-- name: hold
-- Until the commit nobody else writes: who reads by sequence never passes one that commits later.
-- What is read under it is read by a later statement, which sees what was committed before it.
SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || '.events_log', 0));

-- name: begin
-- The last sequence that was given, when the last archived event was, and how many erasures there
-- were.
SELECT coalesce(pg_sequence_last_value('events_log_sequence'), 0), {part archived_until},
    {part erasures};

-- name: append_columns
INSERT INTO events_log (
    event_id, timestamp, ingested_at, event_type, session_id, platform, tenant_id, person, slot,
    priority, workspace_hash, project_name, uuid, parent_uuid, request_id, agent_id,
    is_sidechain, cwd, version, git_branch, message_role, message_model, message_id,
    input_tokens, output_tokens, cache_creation_input_tokens, cache_read_input_tokens,
    duration_ms, tokens_used, tool_calls_count, codec, event_data
)
SELECT * FROM unnest(
    ?::text[], ?::bigint[], ?::bigint[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[],
    ?::smallint[], ?::smallint[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[],
    ?::bigint[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::bigint[],
    ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[], ?::bigint[], ?::text[],
    ?::bytea[]
)
ON CONFLICT (event_id, timestamp, tenant_id) DO NOTHING;

-- part: among
(CAST(:types AS text) IS NULL OR strpos(:types, ' ' || event_type || ' ') > 0)
