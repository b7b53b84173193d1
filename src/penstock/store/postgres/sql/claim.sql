-- name: next_due
SELECT ms(min(scheduled_at)) FROM jobs_live
WHERE status IN ('pending', 'failed') AND waiting_on = 0;

-- name: stage
-- A job with an order key joins its line first; `queued_at` says whether it has.
WITH due AS MATERIALIZED (
    SELECT id FROM jobs_live
    WHERE status IN ('pending', 'failed') AND waiting_on = 0 AND scheduled_at <= at(:now)
      AND (order_key IS NULL OR queued_at IS NOT NULL)
    ORDER BY scheduled_at LIMIT :limit
    FOR UPDATE SKIP LOCKED
)
UPDATE jobs_live
SET status = 'queued', queued_at = at(:now), updated_at = at(:now),
    rank = ms(scheduled_at) + (priority - 1) * :priority_weight::bigint
FROM due WHERE jobs_live.id = due.id;

-- name: first_lane
SELECT queue, tenant_id, type, limit_key FROM jobs_live WHERE status = 'queued'
ORDER BY queue, tenant_id, type, limit_key LIMIT 1;

-- name: next_lane
SELECT queue, tenant_id, type, limit_key FROM jobs_live
WHERE status = 'queued' AND (queue, tenant_id, type, limit_key) > (?, ?, ?, ?)
ORDER BY queue, tenant_id, type, limit_key LIMIT 1;

-- name: adopt_lane
-- No older version ever wrote here: there is nothing to adopt.
UPDATE jobs_live SET limit_key = ''
WHERE status = 'queued' AND queue = ? AND tenant_id = ? AND type = ? AND limit_key IS NULL;

-- A job is named by its id here, where it has no number that is cheaper to find.

-- The index has the jobs of one priority in the order of their ranks: a lane is the ten of them.

-- name: lane
WITH asked AS (
    SELECT ?::text AS queue, ?::text AS tenant_id, ?::text AS type, ?::text AS limit_key,
        ?::bigint AS jobs, ?::bigint AS before
)
SELECT coalesce(json_agg(json_build_array(rank, id)), '[]')::text FROM (
    SELECT found.rank, found.id
    FROM asked CROSS JOIN generate_series(1, 10) AS priority CROSS JOIN LATERAL (
        SELECT rank, seq, id FROM jobs_live
        WHERE status = 'queued' AND jobs_live.queue = asked.queue
          AND jobs_live.tenant_id = asked.tenant_id AND jobs_live.type = asked.type
          AND jobs_live.limit_key = asked.limit_key AND jobs_live.priority = priority.priority
        ORDER BY rank, seq LIMIT asked.before + asked.jobs
    ) AS found
    ORDER BY found.rank, found.seq LIMIT (SELECT jobs FROM asked) OFFSET (SELECT before FROM asked)
) AS waiting;

-- name: urgent_lane
WITH asked AS (
    SELECT ?::text AS queue, ?::text AS tenant_id, ?::text AS type, ?::text AS limit_key,
        ?::int AS least, ?::bigint AS jobs, ?::bigint AS before
)
SELECT coalesce(json_agg(json_build_array(rank, id)), '[]')::text FROM (
    SELECT found.rank, found.id
    FROM asked CROSS JOIN generate_series(1, asked.least) AS priority CROSS JOIN LATERAL (
        SELECT rank, seq, id FROM jobs_live
        WHERE status = 'queued' AND jobs_live.queue = asked.queue
          AND jobs_live.tenant_id = asked.tenant_id AND jobs_live.type = asked.type
          AND jobs_live.limit_key = asked.limit_key AND jobs_live.priority = priority.priority
        ORDER BY rank, seq LIMIT asked.before + asked.jobs
    ) AS found
    ORDER BY found.rank, found.seq LIMIT (SELECT jobs FROM asked) OFFSET (SELECT before FROM asked)
) AS waiting;

-- name: claim
-- A job that keeps coming back without a counted execution is marked as started at once, so that
-- a crash before its mark was written cannot be repeated for ever.
WITH free AS MATERIALIZED (
    SELECT id FROM jobs_live
    WHERE id = ANY(:seqs::text[]) AND status IN ({from claim})
      AND (expires_at IS NULL OR expires_at > at(:now))
    FOR UPDATE SKIP LOCKED
)
UPDATE jobs_live
SET status = 'in_progress', fence = fence + 1, lease_owner = :owner, lease_until = at(:until),
    updated_at = at(:now),
    started_at = CASE WHEN :start::boolean OR returns >= 3 THEN at(:now) END,
    progress_percent = NULL, progress_message = NULL
FROM free WHERE jobs_live.id = ANY(:seqs::text[]) AND jobs_live.id = free.id;

-- name: granted
SELECT coalesce(json_agg(json_build_array(
    id, fence, type, queue, priority, payload::text, attempts, snoozes, rescues, max_retries,
    retry_delay_ms, backoff_multiplier, timeout_ms, ms(expires_at), checkpoint::text, tenant_id,
    workspace_id, parent_job_id, key, metadata::text, trace_context::text, ms(created_at),
    ms(queued_at), ms(started_at), nullif(limit_key, ''), id, key_scope
)), '[]')::text
FROM jobs_live
WHERE id = ANY(:seqs::text[]) AND lease_owner = :owner AND status = 'in_progress';

-- name: granted_one_by_one
SELECT id, fence, type, queue, priority, payload::text, attempts, snoozes, rescues, max_retries,
    retry_delay_ms, backoff_multiplier, timeout_ms, ms(expires_at), checkpoint::text, tenant_id,
    workspace_id, parent_job_id, key, metadata::text, trace_context::text, ms(created_at),
    ms(queued_at), ms(started_at), nullif(limit_key, ''), id, key_scope
FROM jobs_live
WHERE id = ANY(:seqs::text[]) AND lease_owner = :owner AND status = 'in_progress';

-- name: start
UPDATE jobs_live SET started_at = at(:now)
FROM (
    SELECT lease ->> 0 AS id, (lease ->> 1)::bigint AS fence
    FROM jsonb_array_elements(:started::jsonb) AS lease
) AS started
WHERE jobs_live.id = started.id AND jobs_live.fence = started.fence
  AND jobs_live.lease_owner = :owner AND jobs_live.status = 'in_progress'
  AND jobs_live.started_at IS NULL;
