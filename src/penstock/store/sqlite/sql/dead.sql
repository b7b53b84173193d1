-- name: insert_dead_letter
INSERT INTO dead_letter_jobs (
    job_id, type, queue, tenant_id, reason, error, error_code, fingerprint, attempts, rescues,
    snapshot, executions, created_at
)
SELECT id, type, queue, tenant_id, :reason, :error, :code, :fingerprint, attempts, rescues,
    json_object(
        'id', id, 'type', type, 'queue', queue, 'category', category, 'priority', priority,
        'payload', CASE WHEN json_valid(payload) THEN json(payload) ELSE payload END,
        'max_retries', max_retries, 'timeout_ms', timeout_ms, 'tenant_id', tenant_id,
        'workspace_id', workspace_id, 'created_by', created_by, 'parent_job_id', parent_job_id,
        'key', key, 'tags', CASE WHEN json_valid(coalesce(tags, '[]')) THEN json(coalesce(tags, '[]')) ELSE tags END, 'created_at', created_at,
        'scheduled_at', scheduled_at, 'checkpoint', checkpoint),
    coalesce((SELECT json_group_array(json_object(
        'fence', fence, 'status', status, 'started_at', started_at, 'ended_at', ended_at,
        'duration_ms', duration_ms, 'worker', worker, 'error_class', error_class,
        'error_code', error_code, 'error', error))
     FROM (SELECT * FROM job_executions WHERE job_id = jobs.id ORDER BY fence DESC LIMIT 50)), '[]'),
    :now
FROM jobs WHERE id IN (SELECT value FROM json_each(:ids))
ON CONFLICT (job_id) DO UPDATE
SET seq = (SELECT max(seq) + 1 FROM dead_letter_jobs), reason = excluded.reason, error = excluded.error, error_code = excluded.error_code,
    fingerprint = excluded.fingerprint, attempts = excluded.attempts, rescues = excluded.rescues,
    snapshot = excluded.snapshot, executions = excluded.executions, resolution = 'pending',
    resolved_by = NULL, resolved_at = NULL, created_at = excluded.created_at;

-- name: dead_letters
SELECT job_id, type, queue, tenant_id, reason, error, error_code, fingerprint, attempts, rescues,
    CAST(snapshot AS BLOB), executions, resolution, notes, resolved_by, resolved_at, created_at,
    canary_of
FROM dead_letter_jobs
WHERE (:type IS NULL OR type = :type) AND (:resolution IS NULL OR resolution = :resolution)
  AND (NOT :only_open OR resolution IN ('pending', 'investigating'))
  AND (:fingerprint IS NULL OR fingerprint = :fingerprint)
  AND (:tenant_id IS NULL OR tenant_id = :tenant_id)
  AND (:before IS NULL OR seq < (SELECT seq FROM dead_letter_jobs WHERE job_id = :before))
ORDER BY seq DESC LIMIT :limit;

-- name: open_letters
-- Asked every second for critical types: however many are closed, it reads none of them.
SELECT job_id, type, queue, tenant_id, reason, error, error_code, fingerprint, attempts, rescues,
    CAST(snapshot AS BLOB), executions, resolution, notes, resolved_by, resolved_at, created_at,
    canary_of
FROM dead_letter_jobs INDEXED BY dead_letter_jobs_open
WHERE resolution IN ('pending', 'investigating')
  AND (:resolution IS NULL OR resolution = :resolution)
  AND (:tenant_id IS NULL OR tenant_id = :tenant_id)
  AND (:before IS NULL OR seq < (SELECT seq FROM dead_letter_jobs WHERE job_id = :before))
ORDER BY seq DESC LIMIT :limit;

-- name: open_letters_of_type
SELECT job_id, type, queue, tenant_id, reason, error, error_code, fingerprint, attempts, rescues,
    CAST(snapshot AS BLOB), executions, resolution, notes, resolved_by, resolved_at, created_at,
    canary_of
FROM dead_letter_jobs
WHERE resolution IN ('pending', 'investigating') AND type = :type
  AND (:resolution IS NULL OR resolution = :resolution)
  AND (:tenant_id IS NULL OR tenant_id = :tenant_id)
  AND (:before IS NULL OR seq < (SELECT seq FROM dead_letter_jobs WHERE job_id = :before))
ORDER BY seq DESC LIMIT :limit;

-- name: dead_group
-- In the order of its index, so that a page of a large group costs no more than of a small one.
SELECT job_id, type, queue, tenant_id, reason, error, error_code, fingerprint, attempts, rescues,
    CAST(snapshot AS BLOB), executions, resolution, notes, resolved_by, resolved_at, created_at,
    canary_of
FROM dead_letter_jobs
WHERE fingerprint = :fingerprint AND type = :type
  AND (:resolution IS NULL OR resolution = :resolution)
  AND (NOT :only_open OR resolution IN ('pending', 'investigating'))
  AND (:tenant_id IS NULL OR tenant_id = :tenant_id)
  AND (:before IS NULL OR seq < (SELECT seq FROM dead_letter_jobs WHERE job_id = :before))
ORDER BY seq DESC LIMIT :limit;

-- name: dead_canaries
SELECT job_id, type, queue, tenant_id, reason, error, error_code, fingerprint, attempts, rescues,
    CAST(snapshot AS BLOB), executions, resolution, notes, resolved_by, resolved_at, created_at,
    canary_of
FROM dead_letter_jobs
WHERE canary_of = :canary_of AND (:type IS NULL OR type = :type)
  AND (:resolution IS NULL OR resolution = :resolution)
  AND (NOT :only_open OR resolution IN ('pending', 'investigating'))
  AND (:fingerprint IS NULL OR fingerprint = :fingerprint)
  AND (:tenant_id IS NULL OR tenant_id = :tenant_id)
  AND (:before IS NULL OR seq < (SELECT seq FROM dead_letter_jobs WHERE job_id = :before))
ORDER BY seq DESC LIMIT :limit;

-- name: mark_canaries
UPDATE dead_letter_jobs SET canary_of = ? WHERE job_id IN (SELECT value FROM json_each(?));

-- name: dead_groups
-- Counted from an index that has all of it, in its order.
SELECT alike.fingerprint, alike.type, error, error_code, members, still_open, first_at, last_at,
    job_id
FROM (
    SELECT fingerprint, type, count(*) AS members, min(created_at) AS first_at,
        sum(resolution IN ('pending', 'investigating')) AS still_open,
        max(created_at) AS last_at, max(seq) AS newest
    FROM dead_letter_jobs INDEXED BY dead_letter_jobs_group
    WHERE (:type IS NULL OR type = :type)
      AND (:tenant_id IS NULL OR tenant_id = :tenant_id)
    GROUP BY fingerprint, type
    HAVING (NOT :only_open OR still_open > 0)
       AND (:before IS NULL OR newest < (SELECT seq FROM dead_letter_jobs WHERE job_id = :before))
    ORDER BY newest DESC LIMIT :limit
) AS alike JOIN dead_letter_jobs ON seq = newest
ORDER BY newest DESC;

-- name: one_dead_group
SELECT alike.fingerprint, alike.type, error, error_code, members, still_open, first_at, last_at,
    job_id
FROM (
    SELECT fingerprint, type, count(*) AS members, min(created_at) AS first_at,
        sum(resolution IN ('pending', 'investigating')) AS still_open,
        max(created_at) AS last_at, max(seq) AS newest
    FROM dead_letter_jobs INDEXED BY dead_letter_jobs_group
    WHERE fingerprint = :fingerprint AND type = :type
      AND (:tenant_id IS NULL OR tenant_id = :tenant_id)
    GROUP BY fingerprint, type
) AS alike JOIN dead_letter_jobs ON seq = newest;

-- name: dead_group_names
SELECT DISTINCT type, fingerprint
FROM dead_letter_jobs INDEXED BY dead_letter_jobs_group
WHERE (:type IS NULL OR type = :type) AND (:tenant_id IS NULL OR tenant_id = :tenant_id);

-- name: dead_letter
SELECT job_id, type, queue, tenant_id, reason, error, error_code, fingerprint, attempts, rescues,
    CAST(snapshot AS BLOB), executions, resolution, notes, resolved_by, resolved_at, created_at,
    canary_of
FROM dead_letter_jobs WHERE job_id = ?;

-- name: resolve_dead_letter
UPDATE dead_letter_jobs
SET resolution = :resolution, notes = coalesce(:notes, notes), resolved_by = :by,
    resolved_at = CASE WHEN :resolution IN ('resolved', 'ignored') THEN :now END
WHERE job_id = :id;

-- name: dead_count
SELECT count(*) FROM dead_letter_jobs WHERE resolution IN ('pending', 'investigating');

-- name: dead_count_of_type
SELECT count(*) FROM dead_letter_jobs WHERE resolution IN ('pending', 'investigating') AND type = ?;

-- name: still_dead
SELECT id FROM jobs
WHERE id IN (SELECT value FROM json_each(?)) AND +status = 'dead_letter';

-- name: purgeable
SELECT job_id FROM dead_letter_jobs WHERE job_id IN (SELECT value FROM json_each(?));
