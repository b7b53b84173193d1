-- Every statement that ends a lease matches (id, fence, lease_owner): a late worker does nothing.

-- name: complete
-- One statement for a whole batch: other threads run on while SQLite works through it. The plus
-- signs keep the planner on the ids; the index of leased jobs would be walked once per row. Of
-- `jsonb_each` a row is no text that every `->>` would have to parse again.
UPDATE jobs
SET status = 'completed', attempts = attempts + 1, result = ended.result,
    error = NULL, error_details = NULL, started_at = ended.started_at, completed_at = :now,
    updated_at = :now, lease_owner = NULL, lease_until = NULL,
    cancel_requested_at = NULL, cancel_reason = NULL
FROM (
    SELECT value ->> 0 AS id, value ->> 1 AS fence, value ->> 2 AS result,
        value ->> 3 AS started_at
    FROM jsonb_each(:ended)
) AS ended
WHERE jobs.id = ended.id AND +jobs.fence = ended.fence AND +jobs.lease_owner = :owner
  AND +jobs.status IN ({from complete});

-- name: insert_completed_executions
INSERT INTO job_executions (
    job_id, fence, status, started_at, ended_at, wait_ms, duration_ms, cpu_ms, memory_kb, worker,
    result
)
SELECT value ->> 0, value ->> 1, 'completed', value ->> 3, :now, value ->> 4, value ->> 5,
    value ->> 6, value ->> 7, :owner, value ->> 2
FROM jsonb_each(:ended) WHERE true
ON CONFLICT (job_id, fence) DO NOTHING;

-- name: fail
UPDATE jobs
SET status = 'failed', attempts = attempts + :spent, snoozes = snoozes + 1 - :spent,
    error = :error, error_details = :details, scheduled_at = :retry_at,
    timeout_ms = coalesce(:timeout_ms, timeout_ms), failed_at = :now, updated_at = :now,
    started_at = :started_at, lease_owner = NULL, lease_until = NULL
WHERE id = :id AND fence = :fence AND lease_owner = :owner AND status IN ({from fail})
  AND cancel_requested_at IS NULL;

-- name: snooze
UPDATE jobs
SET status = 'pending', snoozes = snoozes + 1, scheduled_at = :retry_at, updated_at = :now,
    started_at = :started_at, lease_owner = NULL, lease_until = NULL
WHERE id = :id AND fence = :fence AND lease_owner = :owner AND status IN ({from snooze})
  AND cancel_requested_at IS NULL;

-- name: stop
UPDATE jobs
SET status = 'cancelled', fence = fence + :taken,
    error = coalesce(cancel_reason, :reason), completed_at = :now,
    updated_at = :now, started_at = :started_at, lease_owner = NULL, lease_until = NULL
WHERE id = :id AND fence = :fence AND lease_owner = :owner AND status IN ({from stop});

-- name: bury
UPDATE jobs
SET status = 'dead_letter', fence = fence + :taken,
    attempts = attempts + :spent, rescues = rescues + :rescued,
    error = :error, error_details = :details, completed_at = :now, failed_at = :now,
    updated_at = :now, started_at = :started_at, lease_owner = NULL, lease_until = NULL
WHERE id = :id AND fence = :fence AND lease_owner = :owner AND status IN ({from bury});

-- name: hand_back
UPDATE jobs
SET status = 'queued', fence = fence + 1, updated_at = :now, started_at = NULL,
    lease_owner = NULL, lease_until = NULL, rescues = rescues + :rescued,
    returns = returns + 1 - :rescued,
    error = coalesce(:error, error), error_details = coalesce(:details, error_details)
WHERE id = :id AND fence = :fence AND lease_owner = :owner AND status IN ({from hand_back})
  AND cancel_requested_at IS NULL;

-- name: insert_execution
INSERT INTO job_executions (
    job_id, fence, status, started_at, ended_at, wait_ms, duration_ms, cpu_ms, memory_kb, worker,
    error_class, error_code, error, error_stack, result
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (job_id, fence) DO NOTHING;

-- name: settled_before
-- The same settlement sent twice, because its answer was lost, is not a stale one.
SELECT 1 FROM job_executions
WHERE job_id = ? AND fence = ? AND worker = ? AND status <> 'lost';

-- name: rescues_of
SELECT rescues FROM jobs
WHERE id = ? AND fence = ? AND lease_owner = ? AND cancel_requested_at IS NULL;

-- name: report_progress
UPDATE jobs
SET progress_percent = coalesce(:percent, progress_percent),
    progress_message = coalesce(:message, progress_message),
    progress = CASE WHEN coalesce(:percent, :document) IS NULL THEN progress ELSE :document END,
    checkpoint = coalesce(:checkpoint, checkpoint), updated_at = :now
WHERE id = :id AND fence = :fence AND lease_owner = :owner AND status = 'in_progress';

-- name: insert_log
INSERT INTO job_logs (job_id, fence, at, level, message) VALUES (?, ?, ?, ?, ?);
