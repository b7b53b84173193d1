-- name: lead
INSERT INTO leaders (role, owner, until) VALUES (:role, :owner, at(:until))
ON CONFLICT (role) DO UPDATE SET owner = excluded.owner, until = excluded.until
WHERE leaders.owner = excluded.owner OR leaders.until <= at(:monotonic);

-- name: resign
DELETE FROM leaders WHERE role = ? AND owner = ?;

-- name: expiring
SELECT id, type, queue, tenant_id, attempts FROM jobs_live
WHERE expires_at IS NOT NULL AND status IN ({from expire}) AND expires_at <= at(?)
ORDER BY expires_at LIMIT ?
FOR UPDATE SKIP LOCKED;

-- name: expire
UPDATE jobs
SET live = false, status = 'dead_letter', error = :error, error_details = :details::json,
    completed_at = at(:now), failed_at = at(:now), updated_at = at(:now)
WHERE live AND id = :id AND status IN ({from expire});

-- name: adopt
-- A running row without an owner was edited by hand; with one it is rescued like any other.
UPDATE jobs_live SET lease_owner = 'nobody' WHERE status = 'in_progress' AND lease_owner IS NULL;

-- name: lapsed
-- A lease whose holder is settling at this moment is passed over: the holder was first.
SELECT id, type, queue, fence, lease_owner, ms(started_at), rescues, ms(cancel_requested_at),
    ms(coalesce(queued_at, created_at)), attempts, tenant_id
FROM jobs_live
WHERE status = 'in_progress' AND coalesce(lease_until, '-infinity') < at(:monotonic)
LIMIT :limit
FOR UPDATE SKIP LOCKED;

-- name: leased_by
SELECT id, type, queue, fence, lease_owner, ms(started_at), rescues, ms(cancel_requested_at),
    ms(coalesce(queued_at, created_at)), attempts, tenant_id
FROM jobs_live
WHERE status = 'in_progress' AND lease_owner = :owner
LIMIT :limit
FOR UPDATE SKIP LOCKED;

-- name: ended_before
SELECT id FROM jobs_ended
WHERE status = :status AND completed_at < at(:before) AND id <> ALL(:spared::text[])
  AND CASE status WHEN 'completed' THEN keep_completed WHEN 'dead_letter' THEN keep_failed END IS NULL
ORDER BY completed_at LIMIT :limit
FOR UPDATE SKIP LOCKED;

-- name: completed_to_remove
-- Of jobs that say themselves when they are removed.
SELECT id FROM jobs_ended WHERE id = ANY(ARRAY(
    SELECT id FROM jobs_ended
    WHERE status = 'completed' AND keep_completed >= 0
      AND (date_part('epoch', completed_at AT TIME ZONE 'UTC') * 1000)::bigint + keep_completed <= :now
    UNION ALL
    SELECT id FROM (
        SELECT id, keep_completed, row_number() OVER (
            PARTITION BY type ORDER BY completed_at DESC, id DESC) AS age
        FROM jobs_ended WHERE status = 'completed' AND keep_completed < 0
    ) AS counted
    WHERE age > -keep_completed
    LIMIT :limit))
FOR UPDATE SKIP LOCKED;

-- name: dead_to_remove
SELECT id FROM jobs_ended WHERE id = ANY(ARRAY(
    SELECT id FROM jobs_ended
    WHERE status = 'dead_letter' AND keep_failed >= 0
      AND (date_part('epoch', completed_at AT TIME ZONE 'UTC') * 1000)::bigint + keep_failed <= :now
    UNION ALL
    SELECT id FROM (
        SELECT id, keep_failed, row_number() OVER (
            PARTITION BY type ORDER BY completed_at DESC, id DESC) AS age
        FROM jobs_ended WHERE status = 'dead_letter' AND keep_failed < 0
    ) AS counted
    WHERE age > -keep_failed
    LIMIT :limit))
FOR UPDATE SKIP LOCKED;

-- name: closed_before
SELECT job_id FROM dead_letter_jobs
WHERE resolution IN ('resolved', 'ignored') AND resolved_at < at(:before)
  AND NOT job_id = ANY(:spared::text[])
ORDER BY resolved_at LIMIT :limit;

-- name: spare_last
SELECT id FROM (
    SELECT id, row_number() OVER (PARTITION BY type ORDER BY id DESC) AS age, kept
    FROM jobs_ended
    JOIN (SELECT key AS kept_type, value::text::bigint AS kept FROM json_each(:keep_last::json))
        AS keep_last ON kept_type = type
    WHERE status = :status
) AS newest
WHERE age <= kept;

-- name: ended_among
SELECT id FROM jobs_ended WHERE id = ANY(?::text[]) FOR UPDATE;

-- name: ended_before_among
SELECT id FROM jobs_ended WHERE id = ANY(:ids::text[]) AND completed_at < at(:before) FOR UPDATE;

-- name: forget_keys
DELETE FROM job_keys WHERE job_id = ANY(?::text[]);

-- name: forget_keys_of_tenant
DELETE FROM job_keys WHERE tenant_id = ?;

-- name: delete_jobs
DELETE FROM jobs_ended WHERE id = ANY(?::text[]);

-- name: delete_executions
DELETE FROM job_executions WHERE job_id = ANY(?::text[]);

-- name: delete_logs
DELETE FROM job_logs WHERE job_id = ANY(?::text[]);

-- name: delete_dead_letters
DELETE FROM dead_letter_jobs WHERE job_id = ANY(?::text[]);

-- name: delete_expired_keys
DELETE FROM job_keys WHERE expires_at IS NOT NULL AND expires_at <= at(?);
