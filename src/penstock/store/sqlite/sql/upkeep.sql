-- part: ended
-- Word for word as in the index of ended jobs, or SQLite would not use it.
(status = 'completed' OR status = 'cancelled' OR status = 'dead_letter')

-- name: lead
INSERT INTO leaders (role, owner, until) VALUES (:role, :owner, :until)
ON CONFLICT (role) DO UPDATE SET owner = excluded.owner, until = excluded.until
WHERE leaders.owner = excluded.owner OR leaders.until <= :monotonic;

-- name: resign
DELETE FROM leaders WHERE role = ? AND owner = ?;

-- name: expiring
SELECT id, type, queue, tenant_id, attempts FROM jobs
WHERE expires_at IS NOT NULL AND status IN ({from expire}) AND expires_at <= ?
ORDER BY expires_at LIMIT ?;

-- name: expire
UPDATE jobs
SET status = 'dead_letter', error = :error, error_details = :details, completed_at = :now,
    failed_at = :now, updated_at = :now
WHERE id = :id AND status IN ({from expire});

-- name: adopt
-- A running row without an owner was edited by hand; with one it is rescued like any other.
UPDATE jobs SET lease_owner = 'nobody' WHERE status = 'in_progress' AND lease_owner IS NULL;

-- name: lapsed
SELECT id, type, queue, fence, lease_owner, started_at, rescues, cancel_requested_at,
    coalesce(queued_at, created_at), attempts, tenant_id
FROM jobs
WHERE status = 'in_progress' AND coalesce(lease_until, -1) < :monotonic
LIMIT :limit;

-- name: leased_by
SELECT id, type, queue, fence, lease_owner, started_at, rescues, cancel_requested_at,
    coalesce(queued_at, created_at), attempts, tenant_id
FROM jobs
WHERE status = 'in_progress' AND lease_owner = :owner
LIMIT :limit;

-- name: ended_before
-- The list of literals is what lets SQLite use the partial index.
SELECT id FROM jobs
WHERE status = :status AND {part ended}
  AND completed_at < :before
  AND CASE status WHEN 'completed' THEN keep_completed WHEN 'dead_letter' THEN keep_failed END IS NULL
  AND id NOT IN (SELECT value FROM json_each(:spared))
ORDER BY completed_at LIMIT :limit;

-- name: completed_to_remove
-- Of jobs that say themselves when they are removed.
SELECT id FROM jobs INDEXED BY jobs_removed_complete
WHERE status = 'completed' AND keep_completed >= 0 AND completed_at + keep_completed <= :now
UNION ALL
SELECT id FROM (
    SELECT id, keep_completed, row_number() OVER (
        PARTITION BY type ORDER BY completed_at DESC, seq DESC) AS age
    FROM jobs INDEXED BY jobs_counted_complete WHERE status = 'completed' AND keep_completed < 0
)
WHERE age > -keep_completed
LIMIT :limit;

-- name: dead_to_remove
SELECT id FROM jobs INDEXED BY jobs_removed_dead
WHERE status = 'dead_letter' AND keep_failed >= 0 AND completed_at + keep_failed <= :now
UNION ALL
SELECT id FROM (
    SELECT id, keep_failed, row_number() OVER (
        PARTITION BY type ORDER BY completed_at DESC, seq DESC) AS age
    FROM jobs INDEXED BY jobs_counted_dead WHERE status = 'dead_letter' AND keep_failed < 0
)
WHERE age > -keep_failed
LIMIT :limit;

-- name: closed_before
-- The list of literals is what lets SQLite use the partial index.
SELECT job_id FROM dead_letter_jobs
WHERE resolution IN ('resolved', 'ignored') AND resolved_at < :before
  AND job_id NOT IN (SELECT value FROM json_each(:spared))
ORDER BY resolved_at LIMIT :limit;

-- name: spare_last
SELECT id FROM (
    SELECT id, type AS job_type, row_number() OVER (PARTITION BY type ORDER BY seq DESC) AS age
    FROM jobs
    WHERE status = :status AND {part ended}
      AND type IN (SELECT key FROM json_each(:keep_last))
)
WHERE age <= (SELECT value FROM json_each(:keep_last) AS kept WHERE kept.key = job_type);

-- name: ended_among
SELECT id FROM jobs
WHERE id IN (SELECT value FROM json_each(?)) AND status IN ('completed', 'cancelled', 'dead_letter');

-- name: ended_before_among
SELECT id FROM jobs
WHERE id IN (SELECT value FROM json_each(:ids))
  AND status IN ('completed', 'cancelled', 'dead_letter') AND completed_at < :before;

-- name: forget_keys
DELETE FROM job_keys WHERE job_id IN (SELECT value FROM json_each(?));

-- name: forget_keys_of_tenant
DELETE FROM job_keys WHERE tenant_id = ?;

-- name: delete_jobs
DELETE FROM jobs WHERE id IN (SELECT value FROM json_each(?));

-- name: delete_executions
DELETE FROM job_executions WHERE job_id IN (SELECT value FROM json_each(?));

-- name: delete_logs
DELETE FROM job_logs WHERE job_id IN (SELECT value FROM json_each(?));

-- name: delete_dead_letters
DELETE FROM dead_letter_jobs WHERE job_id IN (SELECT value FROM json_each(?));

-- name: delete_expired_keys
DELETE FROM job_keys WHERE expires_at IS NOT NULL AND expires_at <= ?;
