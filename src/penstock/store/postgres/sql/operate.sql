-- name: hold_jobs
-- Nobody else changes them from here on, so that what is decided about them stays true.
SELECT id FROM jobs WHERE id = ANY(?::text[]) ORDER BY id FOR UPDATE;

-- name: cancel_waiting
UPDATE jobs
SET live = false, status = 'cancelled', error = :reason, completed_at = at(:now),
    updated_at = at(:now)
WHERE live AND id = ANY(:ids::text[]) AND status IN ({from cancel})
RETURNING id, type, queue, tenant_id, attempts;

-- name: request_cancel
UPDATE jobs_live
SET cancel_requested_at = coalesce(cancel_requested_at, at(:now)), cancel_reason = :reason,
    updated_at = at(:now)
WHERE id = ANY(:ids::text[]) AND status = 'in_progress';

-- name: status_of
SELECT status FROM jobs WHERE id = ?;

-- name: statuses_of
SELECT id, status FROM jobs WHERE id = ANY(?::text[]);

-- name: requeueable
SELECT status, tenant_id, type, key, key_scope FROM jobs WHERE id = ? FOR UPDATE;

-- name: requeue
UPDATE jobs
SET live = true, status = 'pending', attempts = 0, snoozes = 0, rescues = 0, returns = 0,
    scheduled_at = at(:due), expires_at = NULL, result = NULL, error = NULL, error_details = NULL,
    started_at = NULL, completed_at = NULL, failed_at = NULL, queued_at = NULL,
    cancel_requested_at = NULL, cancel_reason = NULL, progress_percent = NULL,
    progress_message = NULL, progress = NULL, updated_at = at(:now)
WHERE NOT live AND id = :id AND status IN ({from requeue});

-- name: resolve_requeued
UPDATE dead_letter_jobs
SET resolution = 'resolved', notes = coalesce(notes, 'requeued'), resolved_at = at(:now)
WHERE job_id = :id AND resolution IN ('pending', 'investigating');

-- name: due_of
SELECT ms(scheduled_at) FROM jobs WHERE id = ?;
