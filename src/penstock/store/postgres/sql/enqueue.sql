-- Jobs with a key, an order or dependencies, and those that were there before. All others are enqueued
-- by functions/enqueue.sql.

-- name: insert_job
INSERT INTO jobs_live (
    live, id, type, queue, tenant_id, status, rank, priority, max_retries, timeout_ms,
    scheduled_at, created_at, updated_at, queued_at, waiting_on, expires_at, retry_delay_ms,
    backoff_multiplier, category, workspace_id, created_by, parent_job_id, schedule_id, key,
    key_scope, limit_key, order_key, tags, metadata, keep_completed, keep_failed, trace_context, payload
)
SELECT true, given.* FROM (VALUES (
    ?::text, ?::text, ?::text, ?::text, ?::text, ?::bigint, ?::smallint, ?::int, ?::bigint, at(?),
    at(?), at(?), at(?), ?::int, at(?), ?::bigint,
    ?::double precision, ?::text, ?::text, ?::text, ?::text, ?::text, ?::text,
    ?::text, ?::text, ?::text, ?::text[], ?::json, ?::bigint, ?::bigint, ?::text, ?::json
)) AS given (id)
WHERE NOT EXISTS (SELECT 1 FROM jobs_ended WHERE jobs_ended.id = given.id)
ON CONFLICT (id) DO NOTHING
RETURNING refuse_ended(id);

-- name: insert_job_all
INSERT INTO jobs_live (
    live, id, type, queue, tenant_id, status, rank, priority, max_retries, timeout_ms,
    scheduled_at, created_at, updated_at, queued_at, waiting_on, expires_at, retry_delay_ms,
    backoff_multiplier, category, workspace_id, created_by, parent_job_id, schedule_id, key,
    key_scope, limit_key, order_key, tags, metadata, keep_completed, keep_failed, trace_context, payload
)
SELECT true, one ->> 0, one ->> 1, one ->> 2, one ->> 3, one ->> 4, (one ->> 5)::bigint,
    (one ->> 6)::smallint, (one ->> 7)::int, (one ->> 8)::bigint, at((one ->> 9)::bigint),
    at((one ->> 10)::bigint), at((one ->> 11)::bigint), at((one ->> 12)::bigint),
    (one ->> 13)::int, at((one ->> 14)::bigint), (one ->> 15)::bigint,
    (one ->> 16)::double precision, one ->> 17, one ->> 18, one ->> 19, one ->> 20, one ->> 21,
    one ->> 22, one ->> 23, one ->> 24, one ->> 25,
    CASE WHEN jsonb_typeof(one -> 26) = 'array'
        THEN ARRAY(SELECT jsonb_array_elements_text(one -> 26)) END,
    (one ->> 27)::json, (one ->> 28)::bigint, (one ->> 29)::bigint, one ->> 30, (one ->> 31)::json
FROM jsonb_array_elements(?::jsonb) AS one
WHERE NOT EXISTS (SELECT 1 FROM jobs_ended WHERE jobs_ended.id = one ->> 0)
ON CONFLICT (id) DO NOTHING
RETURNING refuse_ended(id);

-- name: enqueue_one
-- Without a time, it is the server's.
SELECT now, fresh FROM enqueue_one(?::text, ?::text, ?::json, ?::text, ?::text, ?::smallint, ?::int,
    ?::bigint, ?::double precision, ?::bigint, ?::bigint, ?::bigint, ?::bigint, ?::bigint, ?::text,
    ?::text, ?::text, ?::text, ?::text, ?::text, ?::text[], ?::json, ?::bigint, ?::bigint, ?::text,
    ?::bigint);

-- name: enqueue_alike
-- What the jobs have in common, their ids and their payloads; without a time, the server's.
SELECT now, fresh FROM enqueue_alike(?::json, ?, ?, ?::bigint);

-- name: known_id
SELECT id FROM jobs WHERE id = ?;

-- name: key_holder
SELECT job_id FROM job_keys
WHERE tenant_id = ? AND type = ? AND key = ? AND (expires_at IS NULL OR expires_at > at(?));

-- name: take_key
-- Answers with the holder, whoever that is; a key past its time is anybody's. Two enqueues of one
-- key meet here: the second waits for the first, and then sees it.
INSERT INTO job_keys AS held (tenant_id, type, key, job_id, scope, expires_at)
VALUES (:tenant_id, :type, :key, :job_id, :scope, at(:expires_at))
ON CONFLICT (tenant_id, type, key) DO UPDATE
SET job_id = CASE WHEN held.expires_at <= at(:now) THEN excluded.job_id ELSE held.job_id END,
    scope = CASE WHEN held.expires_at <= at(:now) THEN excluded.scope ELSE held.scope END,
    expires_at = CASE WHEN held.expires_at <= at(:now) THEN excluded.expires_at
        ELSE held.expires_at END
RETURNING job_id;

-- name: any_key
SELECT 1 FROM job_keys LIMIT 1;

-- name: release_keys_at_end
DELETE FROM job_keys
WHERE job_id = ANY(?::text[]) AND scope IN ('while_pending', 'until_done');
