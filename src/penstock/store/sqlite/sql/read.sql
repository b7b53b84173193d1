-- name: get_jobs
SELECT {columns}
FROM jobs WHERE id IN (SELECT value FROM json_each(?));

-- name: executions
SELECT job_id, fence, status, started_at, ended_at, duration_ms, wait_ms, result, error,
    error_class, error_code, error_stack, worker, memory_kb, cpu_ms
FROM job_executions WHERE job_id = ? ORDER BY fence;

-- name: running_execution
SELECT id, fence, started_at, lease_owner, queued_at FROM jobs
WHERE id = ? AND status = 'in_progress' AND started_at IS NOT NULL;

-- name: logs
SELECT at, fence, level, message
FROM (SELECT * FROM job_logs WHERE job_id = ? ORDER BY seq DESC LIMIT ?) ORDER BY seq;

-- name: waiting_jobs
SELECT {columns}
FROM jobs
WHERE status IN ('pending', 'queued', 'failed', 'paused')
  AND seq > coalesce((SELECT seq FROM jobs WHERE id = :after), 0)
ORDER BY seq LIMIT :limit;

-- name: ahead
SELECT count(*) FROM (
    SELECT 1 FROM jobs
    WHERE status = 'queued' AND queue = :queue AND tenant_id = :tenant_id AND type = :type
      AND limit_key = :limit_key AND rank < :rank LIMIT 1000
);

-- name: rank_of
SELECT rank FROM jobs WHERE id = ?;

-- name: other_tenants
-- One seek per tenant, however many jobs each has.
WITH RECURSIVE tenants (tenant_id) AS (
    SELECT min(tenant_id) FROM jobs WHERE status = 'queued' AND queue = ?1
    UNION ALL
    SELECT (SELECT min(jobs.tenant_id) FROM jobs
            WHERE status = 'queued' AND queue = ?1 AND jobs.tenant_id > tenants.tenant_id)
    FROM tenants WHERE tenants.tenant_id IS NOT NULL
    LIMIT 1000
)
SELECT count(*) FROM tenants WHERE tenant_id <> ?2;

-- name: running_ids
-- Those that started first come first; prefetched ones, which have not started, last.
SELECT id FROM jobs INDEXED BY jobs_leased WHERE status = 'in_progress'
ORDER BY started_at IS NULL, started_at, seq LIMIT ?;
