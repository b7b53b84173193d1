-- name: next_due
SELECT min(scheduled_at) FROM jobs WHERE status IN ({from stage}) AND waiting_on = 0;

-- name: stage
-- A job with an order key joins its line first; `queued_at` says whether it has.
UPDATE jobs
SET status = 'queued', queued_at = :now, updated_at = :now,
    rank = scheduled_at + (priority - 1) * :priority_weight
WHERE seq IN (
    SELECT seq FROM jobs
    WHERE status IN ({from stage}) AND waiting_on = 0 AND scheduled_at <= :now
      AND (order_key IS NULL OR queued_at IS NOT NULL)
    ORDER BY scheduled_at LIMIT :limit
);

-- name: first_lane
SELECT queue, tenant_id, type, limit_key FROM jobs WHERE status = 'queued'
ORDER BY queue, tenant_id, type, limit_key LIMIT 1;

-- name: next_lane
-- Four seeks, each past all jobs of one lane; a row-value comparison would walk through them.
SELECT * FROM (
    SELECT queue, tenant_id, type, limit_key FROM jobs
    WHERE status = 'queued' AND queue = ?1 AND tenant_id = ?2 AND type = ?3 AND limit_key > ?4
    ORDER BY limit_key LIMIT 1)
UNION ALL
SELECT * FROM (
    SELECT queue, tenant_id, type, limit_key FROM jobs
    WHERE status = 'queued' AND queue = ?1 AND tenant_id = ?2 AND type > ?3
    ORDER BY type, limit_key LIMIT 1)
UNION ALL
SELECT * FROM (
    SELECT queue, tenant_id, type, limit_key FROM jobs
    WHERE status = 'queued' AND queue = ?1 AND tenant_id > ?2
    ORDER BY tenant_id, type, limit_key LIMIT 1)
UNION ALL
SELECT * FROM (
    SELECT queue, tenant_id, type, limit_key FROM jobs
    WHERE status = 'queued' AND queue > ?1
    ORDER BY queue, tenant_id, type, limit_key LIMIT 1)
LIMIT 1;

-- name: next_lanes
-- The same seeks, from lane to lane in one statement; it ends before a lane without a limit key.
WITH RECURSIVE walk (queue, tenant_id, type, limit_key, steps) AS (
    SELECT ?1, ?2, ?3, ?4, 0
    UNION ALL
    SELECT found.queue, found.tenant_id, found.type, found.limit_key, walk.steps + 1
    FROM walk CROSS JOIN jobs AS found ON found.seq = coalesce(
        (SELECT seq FROM jobs WHERE status = 'queued' AND queue = walk.queue
            AND tenant_id = walk.tenant_id AND type = walk.type AND limit_key > walk.limit_key
            ORDER BY limit_key LIMIT 1),
        (SELECT seq FROM jobs WHERE status = 'queued' AND queue = walk.queue
            AND tenant_id = walk.tenant_id AND type > walk.type
            ORDER BY type, limit_key LIMIT 1),
        (SELECT seq FROM jobs WHERE status = 'queued' AND queue = walk.queue
            AND tenant_id > walk.tenant_id
            ORDER BY tenant_id, type, limit_key LIMIT 1),
        (SELECT seq FROM jobs WHERE status = 'queued' AND queue > walk.queue
            ORDER BY queue, tenant_id, type, limit_key LIMIT 1))
    WHERE walk.steps < ?5 AND found.limit_key IS NOT NULL
)
SELECT json_group_array(json_array(queue, tenant_id, type, limit_key)) FROM walk WHERE steps > 0;

-- name: adopt_lane
UPDATE jobs SET limit_key = ''
WHERE status = 'queued' AND queue = ? AND tenant_id = ? AND type = ? AND limit_key IS NULL;

-- Rows that a claim reads come as one JSON document: between two rows SQLite would hand control
-- back to Python, which under load waits for the handlers every time.

-- name: lane
SELECT json_group_array(json_array(rank, priority, seq)) FROM (
    SELECT rank, priority, seq FROM jobs
    WHERE status = 'queued' AND queue = ? AND tenant_id = ? AND type = ? AND limit_key = ?
    ORDER BY rank, priority, seq LIMIT ?
);

-- name: lane_after
SELECT json_group_array(json_array(rank, priority, seq)) FROM (
    SELECT rank, priority, seq FROM jobs
    WHERE status = 'queued' AND queue = ? AND tenant_id = ? AND type = ? AND limit_key = ?
      AND (rank, priority, seq) > (?, ?, ?)
    ORDER BY rank, priority, seq LIMIT ?
);

-- name: urgent_lane
SELECT json_group_array(json_array(rank, priority, seq)) FROM (
    SELECT rank, priority, seq FROM jobs
    WHERE status = 'queued' AND queue = ? AND tenant_id = ? AND type = ? AND limit_key = ?
      AND priority <= ?
    ORDER BY rank, priority, seq LIMIT ?
);

-- name: urgent_lane_after
SELECT json_group_array(json_array(rank, priority, seq)) FROM (
    SELECT rank, priority, seq FROM jobs
    WHERE status = 'queued' AND queue = ? AND tenant_id = ? AND type = ? AND limit_key = ?
      AND priority <= ? AND (rank, priority, seq) > (?, ?, ?)
    ORDER BY rank, priority, seq LIMIT ?
);

-- name: claim
-- A job that keeps coming back without a counted execution is marked as started at once, so that
-- a crash before its mark was written cannot be repeated for ever.
UPDATE jobs
SET status = 'in_progress', fence = fence + 1, lease_owner = :owner, lease_until = :until,
    updated_at = :now,
    started_at = CASE WHEN :start OR returns >= 3 THEN :now END,
    progress_percent = NULL, progress_message = NULL, progress = NULL
WHERE seq IN (SELECT value FROM json_each(:seqs)) AND status IN ({from claim})
  AND (expires_at IS NULL OR expires_at > :now);

-- name: granted
SELECT CAST(json_group_array(json_array(
    id, fence, type, queue, priority, payload, attempts, snoozes, rescues, max_retries,
    retry_delay_ms, backoff_multiplier, timeout_ms, expires_at, checkpoint, tenant_id, workspace_id,
    parent_job_id, key, metadata, trace_context, created_at, queued_at, started_at,
    nullif(limit_key, ''), seq, key_scope
)) AS BLOB)
FROM jobs
WHERE seq IN (SELECT value FROM json_each(:seqs)) AND lease_owner = :owner
  AND status = 'in_progress';

-- name: granted_one_by_one
SELECT id, fence, type, queue, priority, CAST(payload AS BLOB), attempts, snoozes, rescues,
    max_retries, retry_delay_ms, backoff_multiplier, timeout_ms, expires_at, checkpoint, tenant_id,
    workspace_id, parent_job_id, key, metadata, trace_context, created_at, queued_at, started_at,
    nullif(limit_key, ''), seq, key_scope
FROM jobs
WHERE seq IN (SELECT value FROM json_each(:seqs)) AND lease_owner = :owner
  AND status = 'in_progress';

-- name: start
UPDATE jobs SET started_at = :now
FROM (SELECT value ->> 0 AS id, value ->> 1 AS fence FROM jsonb_each(:started)) AS started
WHERE jobs.id = started.id AND +jobs.fence = started.fence AND +jobs.lease_owner = :owner
  AND +jobs.status = 'in_progress' AND jobs.started_at IS NULL;
