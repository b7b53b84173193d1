-- The functions behind these are in the migrations: their plans are kept by the session.

-- name: claim_quietly
SELECT * FROM claim_quietly(
    :owner, :types::text[], :queues::text[], :max_priority::integer, :limit::integer,
    :start::integer, :lease_ms::bigint, :type_lease_ms::json, :last_tenant, :walked_to::json,
    (SELECT array_agg(known) FROM json_populate_recordset(NULL::lane, :known::json) AS known),
    :tidy::boolean, :now::bigint, :monotonic::bigint);

-- name: claim_named
SELECT * FROM claim_named(
    :owner, :ids::text[], :start::integer, :lease_ms::bigint, :type_lease_ms::json, :now::bigint,
    :monotonic::bigint);

-- name: complete_all
SELECT complete_all(:ended::jsonb, :owner, :sums::jsonb, :now::bigint);

-- name: ended_already
-- Asked after the insert: a job that ended before it must not live a second time.
SELECT 1 FROM jobs_ended WHERE id = ANY(?::text[]) LIMIT 1;

-- name: insert_alike
INSERT INTO jobs_live (
    type, queue, tenant_id, status, rank, priority, max_retries, timeout_ms, scheduled_at,
    created_at, updated_at, queued_at, waiting_on, expires_at, retry_delay_ms, backoff_multiplier,
    category, workspace_id, created_by, parent_job_id, schedule_id, key, key_scope, limit_key,
    order_key, tags, metadata, trace_context, id, payload)
SELECT ?, ?, ?, ?, ?, ?, ?, ?, at(?), at(?), at(?), at(?), ?, at(?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
    ?::text[], ?::json, ?, id, payload::json
FROM unnest(?::text[], ?::text[]) AS given (id, payload)
ON CONFLICT (id) DO NOTHING;
