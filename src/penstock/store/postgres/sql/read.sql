-- name: get_jobs
SELECT {columns}
FROM jobs WHERE id = ANY(?::text[]);

-- name: executions
SELECT job_id, fence, status, ms(started_at), ms(ended_at), duration_ms, wait_ms, result::text,
    error, error_class, error_code, error_stack, worker, memory_kb, cpu_ms
FROM job_executions WHERE job_id = ? ORDER BY fence;

-- name: running_execution
SELECT id, fence, ms(started_at), lease_owner, ms(queued_at) FROM jobs_live
WHERE id = ? AND status = 'in_progress' AND started_at IS NOT NULL;

-- name: logs
SELECT ms(at), fence, level, message
FROM (SELECT * FROM job_logs WHERE job_id = ? ORDER BY seq DESC LIMIT ?) AS latest ORDER BY seq;

-- name: waiting_jobs
SELECT {columns}
FROM jobs_live
WHERE status IN ('pending', 'queued', 'failed', 'paused')
  AND (:after::text IS NULL OR id > :after)
ORDER BY id LIMIT :limit;

-- name: ahead
SELECT count(*) FROM (
    SELECT 1 FROM jobs_live
    WHERE status = 'queued' AND queue = :queue AND tenant_id = :tenant_id AND type = :type
      AND limit_key = :limit_key AND rank < :rank LIMIT 1000
) AS waiting;

-- name: rank_of
SELECT rank FROM jobs WHERE id = ?;

-- name: other_tenants
-- One seek per tenant, however many jobs each has.
WITH RECURSIVE asked AS (SELECT ?::text AS queue, ?::text AS tenant_id),
tenants (tenant_id) AS (
    SELECT (SELECT min(tenant_id) FROM jobs_live
            WHERE status = 'queued' AND jobs_live.queue = asked.queue)
    FROM asked
    UNION ALL
    SELECT (SELECT min(jobs_live.tenant_id) FROM jobs_live
            WHERE status = 'queued' AND jobs_live.queue = asked.queue
              AND jobs_live.tenant_id > tenants.tenant_id)
    FROM tenants CROSS JOIN asked WHERE tenants.tenant_id IS NOT NULL
)
SELECT count(*) FROM (SELECT tenant_id FROM tenants LIMIT 1000) AS found
CROSS JOIN asked WHERE found.tenant_id <> asked.tenant_id;

-- name: running_ids
-- Those that started first come first; prefetched ones, which have not started, last.
SELECT id FROM jobs_live WHERE status = 'in_progress'
ORDER BY started_at IS NULL, started_at, id LIMIT ?;
