-- What is not simply completed; that is functions/settle.sql.
-- Every statement that ends a lease matches (id, fence, lease_owner): a late worker does nothing.
-- A job that ends moves to the other partition by an update of `jobs`, not by a deletion and an
-- insertion: whoever waits for its row then hears that it moved, and does not miss it.

-- name: complete
UPDATE jobs
SET live = false, status = 'completed', attempts = attempts + 1, result = ended.result,
    error = NULL, error_details = NULL, started_at = ended.started_at, completed_at = at(:now),
    updated_at = at(:now), lease_owner = NULL, lease_until = NULL,
    cancel_requested_at = NULL, cancel_reason = NULL
FROM (
    SELECT one ->> 0 AS id, (one ->> 1)::bigint AS fence, (one ->> 2)::json AS result,
        at((one ->> 3)::bigint) AS started_at
    FROM json_array_elements(:ended::json) AS one
) AS ended
WHERE jobs.live AND jobs.id = ended.id AND jobs.fence = ended.fence
  AND jobs.lease_owner = :owner AND jobs.status IN ({from complete});

-- name: insert_completed_executions
INSERT INTO job_executions (
    job_id, fence, status, started_at, ended_at, wait_ms, duration_ms, cpu_ms, memory_kb, worker,
    result
)
SELECT one ->> 0, (one ->> 1)::bigint, 'completed', at((one ->> 3)::bigint), at(:now),
    (one ->> 4)::bigint, (one ->> 5)::bigint, (one ->> 6)::bigint, (one ->> 7)::bigint,
    :owner::text, (one ->> 2)::json
FROM json_array_elements(:ended::json) AS one
ON CONFLICT (job_id, fence) DO NOTHING;

-- name: fail
UPDATE jobs_live
SET status = 'failed', attempts = attempts + :spent::boolean::int,
    snoozes = snoozes + 1 - :spent::boolean::int,
    error = :error, error_details = :details::json, scheduled_at = at(:retry_at),
    timeout_ms = coalesce(:timeout_ms::bigint, timeout_ms), failed_at = at(:now),
    updated_at = at(:now), started_at = at(:started_at), lease_owner = NULL, lease_until = NULL
WHERE id = :id AND fence = :fence AND lease_owner = :owner AND status IN ({from fail})
  AND cancel_requested_at IS NULL;

-- name: snooze
UPDATE jobs_live
SET status = 'pending', snoozes = snoozes + 1, scheduled_at = at(:retry_at),
    updated_at = at(:now), started_at = at(:started_at), lease_owner = NULL, lease_until = NULL
WHERE id = :id AND fence = :fence AND lease_owner = :owner AND status IN ({from snooze})
  AND cancel_requested_at IS NULL;

-- name: stop
UPDATE jobs
SET live = false, status = 'cancelled', fence = fence + :taken::boolean::int,
    error = coalesce(cancel_reason, :reason), completed_at = at(:now),
    updated_at = at(:now), started_at = at(:started_at), lease_owner = NULL, lease_until = NULL
WHERE live AND id = :id AND fence = :fence AND lease_owner = :owner AND status IN ({from stop});

-- name: bury
UPDATE jobs
SET live = false, status = 'dead_letter', fence = fence + :taken::boolean::int,
    attempts = attempts + :spent::boolean::int, rescues = rescues + :rescued::boolean::int,
    error = :error, error_details = :details::json, completed_at = at(:now), failed_at = at(:now),
    updated_at = at(:now), started_at = at(:started_at), lease_owner = NULL, lease_until = NULL
WHERE live AND id = :id AND fence = :fence AND lease_owner = :owner AND status IN ({from bury});

-- name: hand_back
UPDATE jobs_live
SET status = 'queued', fence = fence + 1, updated_at = at(:now), started_at = NULL,
    lease_owner = NULL, lease_until = NULL, rescues = rescues + :rescued::boolean::int,
    returns = returns + 1 - :rescued::boolean::int,
    error = coalesce(:error, error), error_details = coalesce(:details::json, error_details)
WHERE id = :id AND fence = :fence AND lease_owner = :owner AND status IN ({from hand_back})
  AND cancel_requested_at IS NULL;

-- name: insert_execution
INSERT INTO job_executions (
    job_id, fence, status, started_at, ended_at, wait_ms, duration_ms, cpu_ms, memory_kb, worker,
    error_class, error_code, error, error_stack, result
) VALUES (?, ?, ?, at(?), at(?), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?::json)
ON CONFLICT (job_id, fence) DO NOTHING;

-- name: settled_before
-- The same settlement sent twice, because its answer was lost, is not a stale one.
SELECT 1 FROM job_executions
WHERE job_id = ? AND fence = ? AND worker = ? AND status <> 'lost';

-- name: rescues_of
SELECT rescues FROM jobs_live
WHERE id = ? AND fence = ? AND lease_owner = ? AND cancel_requested_at IS NULL;

-- name: report_progress
UPDATE jobs_live
SET progress_percent = coalesce(:percent::double precision, progress_percent),
    progress_message = coalesce(:message, progress_message),
    progress = CASE WHEN :percent::double precision IS NULL AND :document::json IS NULL
        THEN progress ELSE :document::json END,
    checkpoint = coalesce(:checkpoint, checkpoint), updated_at = at(:now)
WHERE id = :id AND fence = :fence AND lease_owner = :owner AND status = 'in_progress';

-- name: insert_log
INSERT INTO job_logs (job_id, fence, at, level, message) VALUES (?, ?, at(?), ?, ?);
