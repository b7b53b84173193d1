-- name: beat
INSERT INTO workers (
    owner, name, node, pid, queues, types, concurrency, running, completed, failed, cpu_percent,
    memory_mb, poll_age_ms, max_priority, state, declared_queues, started_at,
    heartbeat_at
) VALUES (
    :owner, :name, :node, :pid,
    CASE WHEN :queues::json IS NOT NULL
        THEN ARRAY(SELECT json_array_elements_text(:queues::json)) END,
    ARRAY(SELECT json_array_elements_text(:types::json)), :concurrency, :running, :completed,
    :failed, :cpu_percent, :memory_mb, :poll_age_ms, :max_priority, :state,
    ARRAY(SELECT json_array_elements_text(:declared_queues::json)), at(:now), at(:now)
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
DELETE FROM workers WHERE heartbeat_at < at(?);

-- name: workers
SELECT owner, name, node, pid, to_json(queues)::text, to_json(types)::text, concurrency, running,
    completed, failed, cpu_percent, memory_mb, poll_age_ms, max_priority, state,
    to_json(declared_queues)::text, ms(started_at), ms(heartbeat_at)
FROM workers ORDER BY heartbeat_at DESC, owner;

-- name: waiting_types
-- From lane to lane by the index, past all jobs of each; each is counted up to :most.
WITH RECURSIVE lanes AS (
    (SELECT queue, tenant_id, type, limit_key FROM jobs_live WHERE status = 'queued'
    ORDER BY queue, tenant_id, type, limit_key LIMIT 1)
    UNION ALL
    SELECT following.* FROM lanes AS lane CROSS JOIN LATERAL (
        SELECT queue, tenant_id, type, limit_key FROM jobs_live
        WHERE status = 'queued' AND (queue, tenant_id, type, limit_key)
            > (lane.queue, lane.tenant_id, lane.type, lane.limit_key)
        ORDER BY queue, tenant_id, type, limit_key LIMIT 1) AS following
)
SELECT lanes.type, least(:most::bigint, sum(waiting.jobs))::bigint
FROM lanes CROSS JOIN LATERAL (
    SELECT count(*) AS jobs FROM (
        SELECT FROM jobs_live
        WHERE status = 'queued' AND queue = lanes.queue AND tenant_id = lanes.tenant_id
          AND type = lanes.type AND limit_key = lanes.limit_key
        LIMIT :most::bigint) AS counted) AS waiting
GROUP BY lanes.type;
