-- A counter of a tenant's own jobs is called `completed@acme`, beside that of all jobs.

-- part: whose
(strpos(name, '@') = 0 AND :tenant_id::text IS NULL
    OR strpos(name, '@') > 0 AND substr(name, strpos(name, '@') + 1) = :tenant_id)

-- part: counter
CASE WHEN strpos(name, '@') = 0 THEN name ELSE substr(name, 1, strpos(name, '@') - 1) END

-- part: amount
CASE WHEN name LIKE 'duration_max%' THEN max(value) ELSE sum(value) END

-- part: lasts
name NOT LIKE 'gauge:%' AND name <> 'duration_max' AND strpos(name, '@') = 0

-- name: add_metrics
-- Only appended to: two settles at the same time never wait for each other's counters.
INSERT INTO metric_deltas (bucket, sums) VALUES (:bucket, :sums::jsonb);

-- name: gather_counts
WITH gone AS (DELETE FROM metric_deltas RETURNING bucket, sums)
INSERT INTO metrics (resolution_ms, bucket, type, queue, name, value)
SELECT :fine, bucket, type, queue, name, {part amount}
FROM gone CROSS JOIN LATERAL (
    SELECT one ->> 0 AS type, one ->> 1 AS queue, one ->> 2 AS name,
        (one ->> 3)::double precision AS value
    FROM jsonb_array_elements(sums) AS one) AS counted
GROUP BY bucket, type, queue, name
ON CONFLICT (resolution_ms, bucket, type, queue, name) DO UPDATE
SET value = CASE WHEN excluded.name LIKE 'duration_max%' THEN greatest(metrics.value, excluded.value)
    ELSE metrics.value + excluded.value END;

-- name: set_metrics
INSERT INTO metrics (resolution_ms, bucket, type, queue, name, value)
SELECT :step, :bucket, one ->> 0, one ->> 1, one ->> 2, (one ->> 3)::double precision
FROM jsonb_array_elements(:sums::jsonb) AS one
ON CONFLICT (resolution_ms, bucket, type, queue, name) DO UPDATE SET value = excluded.value;

-- name: fold_metrics
-- Folding is idempotent: a coarse step is always the whole sum (or the largest sample) of its fine ones.
INSERT INTO metrics (resolution_ms, bucket, type, queue, name, value)
SELECT :coarse, bucket / :coarse::bigint * :coarse::bigint, type, queue, name,
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
-- What no roll-up has gathered yet counts too; it is all of the finest step.
SELECT type, queue, {part counter}, {part amount} FROM (
    SELECT type, queue, name, value FROM metrics
    WHERE resolution_ms = :resolution AND bucket >= :since AND name NOT LIKE 'gauge:%'
    UNION ALL
    SELECT one ->> 0, one ->> 1, one ->> 2, (one ->> 3)::double precision
    FROM metric_deltas CROSS JOIN jsonb_array_elements(sums) AS one
    WHERE :resolution::bigint = :fine::bigint AND bucket >= :since
) AS counted
WHERE {part whose}
GROUP BY type, queue, name;

-- name: metric_series
SELECT bucket, {part counter}, CASE WHEN name = 'gauge:oldest_ms' THEN max(value) ELSE sum(value) END
FROM (
    SELECT bucket, name, value FROM metrics
    WHERE resolution_ms = :resolution AND bucket >= :since
    UNION ALL
    SELECT bucket, one ->> 2, (one ->> 3)::double precision
    FROM metric_deltas CROSS JOIN jsonb_array_elements(sums) AS one
    WHERE :resolution::bigint = :fine::bigint AND bucket >= :since
) AS counted
WHERE {part whose} AND (:timings::boolean OR (name NOT LIKE 'duration:%' AND name NOT LIKE 'wait:%'))
  AND name NOT LIKE 'attempts:%' AND name NOT LIKE 'duration\_%' AND name NOT LIKE 'wait\_%'
  AND name <> 'started'
GROUP BY bucket, name ORDER BY bucket;

-- name: totals
-- What no roll-up has gathered yet counts too, whenever it was.
SELECT type, queue, name, sum(value) FROM (
    SELECT type, queue, name, counted.value
    FROM jsonb_array_elements(:pieces::jsonb) AS piece CROSS JOIN LATERAL (
        SELECT type, queue, name, metrics.value FROM metrics
        WHERE resolution_ms = (piece ->> 0)::bigint AND bucket >= (piece ->> 1)::bigint
          AND bucket < (piece ->> 2)::bigint
        OFFSET 0) AS counted -- each by the index, however many rows there are in all
    UNION ALL
    SELECT one ->> 0, one ->> 1, one ->> 2, (one ->> 3)::double precision
    FROM metric_deltas CROSS JOIN jsonb_array_elements(sums) AS one
) AS counted
WHERE {part lasts}
GROUP BY type, queue, name ORDER BY type COLLATE "C", queue COLLATE "C", name COLLATE "C";

-- name: summed_to
SELECT value::bigint FROM penstock_meta WHERE name = 'summed_to';

-- name: remember_sum
INSERT INTO penstock_meta (name, value) VALUES ('summed_to', ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: add_to_sum
INSERT INTO metrics (resolution_ms, bucket, type, queue, name, value)
SELECT 0, 0, type, queue, name, sum(counted.value)
FROM jsonb_array_elements(:pieces::jsonb) AS piece CROSS JOIN LATERAL (
    SELECT type, queue, name, metrics.value FROM metrics
    WHERE resolution_ms = (piece ->> 0)::bigint AND bucket >= (piece ->> 1)::bigint
      AND bucket < (piece ->> 2)::bigint
    OFFSET 0) AS counted
WHERE {part lasts}
GROUP BY type, queue, name
ON CONFLICT (resolution_ms, bucket, type, queue, name) DO UPDATE
SET value = metrics.value + excluded.value;

-- name: first_day_after
SELECT min(bucket) FROM metrics WHERE resolution_ms = :day AND bucket > :since;

-- name: queued_depths
-- Rank less its handicap is the time the job fell due; the index alone answers.
SELECT queue, count(*), min(rank - (priority - 1) * :weight::bigint) FROM jobs_live
WHERE status = 'queued' AND (:tenant_id::text IS NULL OR tenant_id = :tenant_id) GROUP BY queue;

-- name: rolled_up_at
SELECT value::bigint FROM penstock_meta WHERE name = 'rolled_up_at';

-- name: remember_roll_up
INSERT INTO penstock_meta (name, value) VALUES ('rolled_up_at', ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: waiting_depths
SELECT queue, status, count(*) FROM jobs_live
WHERE status IN ({from stage}) AND waiting_on = 0
  AND (:tenant_id::text IS NULL OR tenant_id = :tenant_id)
GROUP BY queue, status;

-- name: held_depths
SELECT queue, 'blocked', count(*) FROM jobs_live
WHERE status = 'pending' AND waiting_on > 0
  AND (:tenant_id::text IS NULL OR tenant_id = :tenant_id)
GROUP BY queue
UNION ALL
SELECT queue, 'paused', count(*) FROM pauses JOIN jobs_live ON jobs_live.id = pauses.name
WHERE pauses.scope = 'job' AND status = 'paused'
  AND (:tenant_id::text IS NULL OR tenant_id = :tenant_id)
GROUP BY queue;

-- name: leased_depths
SELECT queue, count(*) FROM jobs_live
WHERE status = 'in_progress' AND (:tenant_id::text IS NULL OR tenant_id = :tenant_id)
GROUP BY queue;
