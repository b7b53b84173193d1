-- A counter of a tenant's own jobs is called `completed@acme`, beside that of all jobs.

-- part: whose
(instr(name, '@') = 0 AND :tenant_id IS NULL
    OR instr(name, '@') > 0 AND substr(name, instr(name, '@') + 1) = :tenant_id)

-- part: counter
CASE WHEN instr(name, '@') = 0 THEN name ELSE substr(name, 1, instr(name, '@') - 1) END

-- part: amount
CASE WHEN name LIKE 'duration_max%' THEN max(value) ELSE sum(value) END

-- part: lasts
name NOT LIKE 'gauge:%' AND name <> 'duration_max' AND instr(name, '@') = 0

-- name: add_metrics
INSERT INTO metrics (resolution_ms, bucket, type, queue, name, value)
SELECT :step, :bucket, value ->> 0, value ->> 1, value ->> 2, value ->> 3
FROM jsonb_each(:sums) WHERE true
ON CONFLICT (resolution_ms, bucket, type, queue, name) DO UPDATE
SET value = CASE WHEN name LIKE 'duration_max%' THEN max(metrics.value, excluded.value)
    ELSE metrics.value + excluded.value END;

-- name: set_metrics
INSERT INTO metrics (resolution_ms, bucket, type, queue, name, value)
SELECT :step, :bucket, value ->> 0, value ->> 1, value ->> 2, value ->> 3
FROM jsonb_each(:sums) WHERE true
ON CONFLICT (resolution_ms, bucket, type, queue, name) DO UPDATE SET value = excluded.value;

-- name: fold_metrics
-- Folding is idempotent: a coarse step is always the whole sum (or the largest sample) of its fine ones.
INSERT INTO metrics (resolution_ms, bucket, type, queue, name, value)
SELECT :coarse, bucket / :coarse * :coarse, type, queue, name,
    CASE WHEN name LIKE 'gauge:%' OR name LIKE 'duration_max%' THEN max(value) ELSE sum(value) END
FROM metrics
WHERE resolution_ms = :fine AND bucket >= :since
GROUP BY 2, type, queue, name
ON CONFLICT (resolution_ms, bucket, type, queue, name) DO UPDATE SET value = excluded.value;

-- name: keep_days
-- What was counted in days that are dropped goes on being counted, in the day 0.
INSERT INTO metrics (resolution_ms, bucket, type, queue, name, value)
SELECT resolution_ms, 0, type, queue, name, sum(value) FROM metrics
WHERE resolution_ms = :day AND bucket > 0 AND bucket < :before AND {part lasts}
GROUP BY resolution_ms, type, queue, name
ON CONFLICT (resolution_ms, bucket, type, queue, name) DO UPDATE
SET value = metrics.value + excluded.value;

-- name: drop_metrics
DELETE FROM metrics WHERE resolution_ms = ? AND bucket > 0 AND bucket < ?;

-- name: erase_metrics
DELETE FROM metrics WHERE {part whose};

-- name: metric_window
SELECT type, queue, {part counter}, {part amount} FROM metrics
WHERE resolution_ms = :resolution AND bucket >= :since AND name NOT LIKE 'gauge:%' AND {part whose}
GROUP BY type, queue, name;

-- name: metric_series
SELECT bucket, {part counter}, CASE WHEN name = 'gauge:oldest_ms' THEN max(value) ELSE sum(value) END
FROM metrics
WHERE resolution_ms = :resolution AND bucket >= :since AND {part whose}
  AND (:timings OR (name NOT LIKE 'duration:%' AND name NOT LIKE 'wait:%'))
  AND name NOT LIKE 'attempts:%' AND name NOT LIKE 'duration\_%' ESCAPE '\'
  AND name NOT LIKE 'wait\_%' ESCAPE '\' AND name <> 'started'
GROUP BY bucket, name ORDER BY bucket;

-- name: totals
SELECT metrics.type, queue, name, sum(metrics.value)
FROM jsonb_each(:pieces) AS piece CROSS JOIN metrics
WHERE resolution_ms = piece.value ->> 0 AND bucket >= piece.value ->> 1
  AND bucket < piece.value ->> 2 AND {part lasts}
GROUP BY metrics.type, queue, name ORDER BY metrics.type, queue, name;

-- name: summed_to
SELECT value FROM penstock_meta WHERE name = 'summed_to';

-- name: remember_sum
INSERT INTO penstock_meta VALUES ('summed_to', ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: add_to_sum
INSERT INTO metrics (resolution_ms, bucket, type, queue, name, value)
SELECT 0, 0, metrics.type, queue, name, sum(metrics.value)
FROM jsonb_each(:pieces) AS piece CROSS JOIN metrics
WHERE resolution_ms = piece.value ->> 0 AND bucket >= piece.value ->> 1
  AND bucket < piece.value ->> 2 AND {part lasts}
GROUP BY metrics.type, queue, name
ON CONFLICT (resolution_ms, bucket, type, queue, name) DO UPDATE
SET value = metrics.value + excluded.value;

-- name: first_day_after
SELECT min(bucket) FROM metrics WHERE resolution_ms = :day AND bucket > :since;

-- name: queued_depths
-- Rank less its handicap is the time the job fell due; the index alone answers.
SELECT queue, count(*), min(rank - (priority - 1) * :weight) FROM jobs INDEXED BY jobs_queued
WHERE status = 'queued' AND (:tenant_id IS NULL OR tenant_id = :tenant_id) GROUP BY queue;

-- name: rolled_up_at
SELECT value FROM penstock_meta WHERE name = 'rolled_up_at';

-- name: remember_roll_up
INSERT INTO penstock_meta VALUES ('rolled_up_at', ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: waiting_depths
SELECT queue, status, count(*) FROM jobs INDEXED BY jobs_due
WHERE status IN ({from stage}) AND waiting_on = 0
  AND (:tenant_id IS NULL OR tenant_id = :tenant_id)
GROUP BY queue, status;

-- name: held_depths
SELECT queue, 'blocked', count(*) FROM jobs INDEXED BY jobs_blocked
WHERE status = 'pending' AND waiting_on > 0 AND (:tenant_id IS NULL OR tenant_id = :tenant_id)
GROUP BY queue
UNION ALL
SELECT queue, 'paused', count(*) FROM pauses JOIN jobs ON jobs.id = pauses.name
WHERE pauses.scope = 'job' AND status = 'paused'
  AND (:tenant_id IS NULL OR tenant_id = :tenant_id)
GROUP BY queue;

-- name: leased_depths
SELECT queue, count(*) FROM jobs INDEXED BY jobs_leased
WHERE status = 'in_progress' AND (:tenant_id IS NULL OR tenant_id = :tenant_id)
GROUP BY queue;
