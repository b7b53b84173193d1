-- The functions behind these are in the migrations: their plans are kept by the session.

-- name: claim_quietly
-- At least one row, which tells of the claim itself; without a job if there was none.
SELECT needs, due, walked_to, lanes, walk_us, leased.*
FROM choose_quietly(
    :types::text[], :queues::text[], :max_priority::integer, :limit::integer, :last_tenant,
    :walked_to::json,
    (SELECT array_agg(known) FROM json_populate_recordset(NULL::lane, :known::json) AS known),
    :tidy::boolean, :now::bigint)
LEFT JOIN LATERAL lease(ids, :owner, :start::integer, :lease_ms::bigint, :type_lease_ms::json,
    :now::bigint, :monotonic::bigint) AS leased ON true;

-- name: claim_named
SELECT needs, leased.*
FROM choose_named(:ids::text[], :now::bigint)
LEFT JOIN LATERAL lease(ids, :owner, :start::integer, :lease_ms::bigint, :type_lease_ms::json,
    :now::bigint, :monotonic::bigint) AS leased ON true
WHERE needs IS NOT NULL OR leased.id IS NOT NULL;

-- name: complete_all
SELECT complete_all(:ended::jsonb, :owner, :sums::jsonb, :now::bigint);

-- name: ended_already
-- Asked after the insert: a job that ended before it must not live a second time.
SELECT 1 FROM jobs_ended WHERE id = ANY(string_to_array(?, E'\x1f')) LIMIT 1;

-- name: insert_alike
INSERT INTO jobs_live (
    type, queue, tenant_id, status, rank, priority, max_retries, timeout_ms, scheduled_at,
    created_at, updated_at, queued_at, waiting_on, expires_at, retry_delay_ms, backoff_multiplier,
    category, workspace_id, created_by, parent_job_id, schedule_id, key, key_scope, limit_key,
    order_key, tags, metadata, trace_context, id, payload)
SELECT ?, ?, ?, ?, ?, ?, ?, ?, at(?), at(?), at(?), at(?), ?, at(?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
    ?::text[], ?::json, ?, id, payload::json
FROM unnest(string_to_array(?, E'\x1f'), string_to_array(?, E'\x1f')) AS given (id, payload)
ON CONFLICT (id) DO NOTHING;
