-- name: hold_jobs
SELECT id FROM jobs WHERE id IN (SELECT value FROM json_each(?));

-- name: cancel_waiting
UPDATE jobs
SET status = 'cancelled', error = :reason, completed_at = :now, updated_at = :now
WHERE id IN (SELECT value FROM json_each(:ids)) AND status IN ({from cancel})
RETURNING id, type, queue, tenant_id, attempts;

-- name: request_cancel
UPDATE jobs
SET cancel_requested_at = coalesce(cancel_requested_at, :now), cancel_reason = :reason,
    updated_at = :now
WHERE id IN (SELECT value FROM json_each(:ids)) AND status = 'in_progress';

-- name: status_of
SELECT status FROM jobs WHERE id = ?;

-- name: statuses_of
SELECT id, status FROM jobs WHERE id IN (SELECT value FROM json_each(?));

-- name: requeueable
SELECT status, tenant_id, type, key, key_scope FROM jobs WHERE id = ?;

-- name: requeue
UPDATE jobs
SET status = 'pending', attempts = 0, snoozes = 0, rescues = 0, returns = 0, scheduled_at = :due,
    expires_at = NULL, result = NULL, error = NULL, error_details = NULL, started_at = NULL,
    completed_at = NULL, failed_at = NULL, queued_at = NULL, cancel_requested_at = NULL,
    cancel_reason = NULL, progress_percent = NULL, progress_message = NULL, progress = NULL,
    updated_at = :now
WHERE id = :id AND status IN ({from requeue});

-- name: resolve_requeued
UPDATE dead_letter_jobs
SET resolution = 'resolved', notes = coalesce(notes, 'requeued'), resolved_at = :now
WHERE job_id = :id AND resolution IN ('pending', 'investigating');

-- name: due_of
SELECT scheduled_at FROM jobs WHERE id = ?;
