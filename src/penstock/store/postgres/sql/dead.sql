-- name: insert_dead_letter
INSERT INTO dead_letter_jobs (
    job_id, type, queue, tenant_id, reason, error, error_code, fingerprint, attempts, rescues,
    snapshot, executions, created_at
)
SELECT id, type, queue, tenant_id, :reason::text, :error::text, :code::text, :fingerprint::text,
    attempts, rescues,
    json_build_object(
        'id', id, 'type', type, 'queue', queue, 'category', category, 'priority', priority,
        'payload', payload, 'max_retries', max_retries, 'timeout_ms', timeout_ms,
        'tenant_id', tenant_id, 'workspace_id', workspace_id, 'created_by', created_by,
        'parent_job_id', parent_job_id, 'key', key, 'tags', coalesce(tags, '{}'),
        'created_at', ms(created_at), 'scheduled_at', ms(scheduled_at),
        'checkpoint', checkpoint::text),
    coalesce((SELECT json_agg(json_build_object(
        'fence', fence, 'status', status, 'started_at', ms(started_at), 'ended_at', ms(ended_at),
        'duration_ms', duration_ms, 'worker', worker, 'error_class', error_class,
        'error_code', error_code, 'error', error))
     FROM (
        SELECT * FROM job_executions WHERE job_id = jobs.id ORDER BY fence DESC LIMIT 50
     ) AS latest), '[]'),
    at(:now)
FROM jobs WHERE id = ANY(:ids::text[])
ON CONFLICT (job_id) DO UPDATE
SET seq = excluded.seq, reason = excluded.reason, error = excluded.error,
    error_code = excluded.error_code, fingerprint = excluded.fingerprint,
    attempts = excluded.attempts, rescues = excluded.rescues, snapshot = excluded.snapshot,
    executions = excluded.executions, resolution = 'pending', resolved_by = NULL,
    resolved_at = NULL, created_at = excluded.created_at;

-- name: dead_letters
SELECT job_id, type, queue, tenant_id, reason, error, error_code, fingerprint, attempts, rescues,
    snapshot::text, executions::text, resolution, notes, resolved_by, ms(resolved_at),
    ms(created_at), canary_of
FROM dead_letter_jobs
WHERE (:type::text IS NULL OR type = :type)
  AND (:resolution::text IS NULL OR resolution = :resolution)
  AND (NOT :only_open::boolean OR resolution IN ('pending', 'investigating'))
  AND (:fingerprint::text IS NULL OR fingerprint = :fingerprint)
  AND (:tenant_id::text IS NULL OR tenant_id = :tenant_id)
  AND (:before::text IS NULL
      OR seq < (SELECT seq FROM dead_letter_jobs WHERE job_id = :before))
ORDER BY seq DESC LIMIT :limit;

-- name: open_letters
-- Asked every second for critical types: however many are closed, it reads none of them.
SELECT job_id, type, queue, tenant_id, reason, error, error_code, fingerprint, attempts, rescues,
    snapshot::text, executions::text, resolution, notes, resolved_by, ms(resolved_at),
    ms(created_at), canary_of
FROM dead_letter_jobs
WHERE resolution IN ('pending', 'investigating')
  AND (:resolution::text IS NULL OR resolution = :resolution)
  AND (:tenant_id::text IS NULL OR tenant_id = :tenant_id)
  AND (:before::text IS NULL
      OR seq < (SELECT seq FROM dead_letter_jobs WHERE job_id = :before))
ORDER BY seq DESC LIMIT :limit;

-- name: open_letters_of_type
SELECT job_id, type, queue, tenant_id, reason, error, error_code, fingerprint, attempts, rescues,
    snapshot::text, executions::text, resolution, notes, resolved_by, ms(resolved_at),
    ms(created_at), canary_of
FROM dead_letter_jobs
WHERE resolution IN ('pending', 'investigating') AND type = :type
  AND (:resolution::text IS NULL OR resolution = :resolution)
  AND (:tenant_id::text IS NULL OR tenant_id = :tenant_id)
  AND (:before::text IS NULL
      OR seq < (SELECT seq FROM dead_letter_jobs WHERE job_id = :before))
ORDER BY seq DESC LIMIT :limit;

-- name: dead_group
-- In the order of its index, so that a page of a large group costs no more than of a small one.
SELECT job_id, type, queue, tenant_id, reason, error, error_code, fingerprint, attempts, rescues,
    snapshot::text, executions::text, resolution, notes, resolved_by, ms(resolved_at),
    ms(created_at), canary_of
FROM dead_letter_jobs
WHERE fingerprint = :fingerprint AND type = :type
  AND (:resolution::text IS NULL OR resolution = :resolution)
  AND (NOT :only_open::boolean OR resolution IN ('pending', 'investigating'))
  AND (:tenant_id::text IS NULL OR tenant_id = :tenant_id)
  AND (:before::text IS NULL
      OR seq < (SELECT seq FROM dead_letter_jobs WHERE job_id = :before))
ORDER BY seq DESC LIMIT :limit;

-- name: dead_canaries
SELECT job_id, type, queue, tenant_id, reason, error, error_code, fingerprint, attempts, rescues,
    snapshot::text, executions::text, resolution, notes, resolved_by, ms(resolved_at),
    ms(created_at), canary_of
FROM dead_letter_jobs
WHERE canary_of = :canary_of AND (:type::text IS NULL OR type = :type)
  AND (:resolution::text IS NULL OR resolution = :resolution)
  AND (NOT :only_open::boolean OR resolution IN ('pending', 'investigating'))
  AND (:fingerprint::text IS NULL OR fingerprint = :fingerprint)
  AND (:tenant_id::text IS NULL OR tenant_id = :tenant_id)
  AND (:before::text IS NULL
      OR seq < (SELECT seq FROM dead_letter_jobs WHERE job_id = :before))
ORDER BY seq DESC LIMIT :limit;

-- name: mark_canaries
UPDATE dead_letter_jobs SET canary_of = ? WHERE job_id = ANY(?::text[]);

-- name: dead_groups
-- Counted from an index that has all of it, in its order.
SELECT alike.fingerprint, alike.type, error, error_code, members, still_open, ms(first_at),
    ms(last_at), job_id
FROM (
    SELECT fingerprint, type, count(*) AS members, min(created_at) AS first_at,
        count(*) FILTER (WHERE resolution IN ('pending', 'investigating')) AS still_open,
        max(created_at) AS last_at, max(seq) AS newest
    FROM dead_letter_jobs
    WHERE (:type::text IS NULL OR type = :type)
      AND (:tenant_id::text IS NULL OR tenant_id = :tenant_id)
    GROUP BY fingerprint, type
    HAVING (NOT :only_open::boolean
            OR count(*) FILTER (WHERE resolution IN ('pending', 'investigating')) > 0)
       AND (:before::text IS NULL
            OR max(seq) < (SELECT seq FROM dead_letter_jobs WHERE job_id = :before))
    ORDER BY newest DESC LIMIT :limit
) AS alike JOIN dead_letter_jobs ON seq = newest
ORDER BY newest DESC;

-- name: one_dead_group
SELECT alike.fingerprint, alike.type, error, error_code, members, still_open, ms(first_at),
    ms(last_at), job_id
FROM (
    SELECT fingerprint, type, count(*) AS members, min(created_at) AS first_at,
        count(*) FILTER (WHERE resolution IN ('pending', 'investigating')) AS still_open,
        max(created_at) AS last_at, max(seq) AS newest
    FROM dead_letter_jobs
    WHERE fingerprint = :fingerprint AND type = :type
      AND (:tenant_id::text IS NULL OR tenant_id = :tenant_id)
    GROUP BY fingerprint, type
) AS alike JOIN dead_letter_jobs ON seq = newest;

-- name: dead_group_names
SELECT DISTINCT type, fingerprint FROM dead_letter_jobs
WHERE (:type::text IS NULL OR type = :type) AND (:tenant_id::text IS NULL OR tenant_id = :tenant_id);

-- name: dead_letter
SELECT job_id, type, queue, tenant_id, reason, error, error_code, fingerprint, attempts, rescues,
    snapshot::text, executions::text, resolution, notes, resolved_by, ms(resolved_at),
    ms(created_at), canary_of
FROM dead_letter_jobs WHERE job_id = ?;

-- name: resolve_dead_letter
UPDATE dead_letter_jobs
SET resolution = :resolution, notes = coalesce(:notes::text, notes), resolved_by = :by,
    resolved_at = CASE WHEN :resolution::text IN ('resolved', 'ignored') THEN at(:now) END
WHERE job_id = :id;

-- name: dead_count
SELECT count(*) FROM dead_letter_jobs WHERE resolution IN ('pending', 'investigating');

-- name: dead_count_of_type
SELECT count(*) FROM dead_letter_jobs WHERE resolution IN ('pending', 'investigating') AND type = ?;

-- name: still_dead
SELECT id FROM jobs_ended
WHERE id = ANY(?::text[]) AND status = 'dead_letter' ORDER BY id FOR UPDATE;

-- name: purgeable
SELECT job_id FROM dead_letter_jobs WHERE job_id = ANY(?::text[]);
