-- name: beat
INSERT INTO workers (
    owner, name, node, pid, queues, types, concurrency, running, completed, failed, cpu_percent,
    memory_mb, poll_age_ms, max_priority, state, declared_queues, started_at,
    heartbeat_at
) VALUES (
    :owner, :name, :node, :pid, :queues, :types, :concurrency, :running, :completed, :failed,
    :cpu_percent, :memory_mb, :poll_age_ms, :max_priority, :state, :declared_queues, :now, :now
)
ON CONFLICT (owner) DO UPDATE
SET running = excluded.running, completed = excluded.completed, failed = excluded.failed,
    cpu_percent = excluded.cpu_percent, memory_mb = excluded.memory_mb, types = excluded.types,
    queues = excluded.queues, declared_queues = excluded.declared_queues,
    concurrency = excluded.concurrency, poll_age_ms = excluded.poll_age_ms, state = excluded.state,
    heartbeat_at = excluded.heartbeat_at;

-- name: forget_worker
DELETE FROM workers WHERE owner = ?;

-- name: forget_stale_workers
DELETE FROM workers WHERE heartbeat_at < ?;

-- name: workers
SELECT owner, name, node, pid, queues, types, concurrency, running, completed, failed, cpu_percent,
    memory_mb, poll_age_ms, max_priority, state, declared_queues, started_at, heartbeat_at
FROM workers ORDER BY heartbeat_at DESC, owner;

-- name: waiting_types
-- Four seeks lead past all jobs of a lane to the next one; each is counted up to :most.
WITH RECURSIVE lanes (queue, tenant_id, type, limit_key) AS (
    SELECT * FROM (
        SELECT queue, tenant_id, type, limit_key FROM jobs WHERE status = 'queued'
        ORDER BY queue, tenant_id, type, limit_key LIMIT 1)
    UNION ALL
    SELECT following.queue, following.tenant_id, following.type, following.limit_key
    FROM lanes AS lane CROSS JOIN jobs AS following ON following.seq = coalesce((
        SELECT seq FROM jobs
        WHERE status = 'queued' AND queue = lane.queue AND tenant_id = lane.tenant_id
          AND type = lane.type AND limit_key > lane.limit_key
        ORDER BY limit_key LIMIT 1), (
        SELECT seq FROM jobs
        WHERE status = 'queued' AND queue = lane.queue AND tenant_id = lane.tenant_id
          AND type > lane.type
        ORDER BY type, limit_key LIMIT 1), (
        SELECT seq FROM jobs
        WHERE status = 'queued' AND queue = lane.queue AND tenant_id > lane.tenant_id
        ORDER BY tenant_id, type, limit_key LIMIT 1), (
        SELECT seq FROM jobs
        WHERE status = 'queued' AND queue > lane.queue
        ORDER BY queue, tenant_id, type, limit_key LIMIT 1))
)
SELECT type, min(:most, sum((
    SELECT count(*) FROM (
        SELECT 1 FROM jobs
        WHERE status = 'queued' AND queue = lanes.queue AND tenant_id = lanes.tenant_id
          AND type = lanes.type AND limit_key = lanes.limit_key
        LIMIT :most))))
FROM lanes GROUP BY type;
