-- Claims that have to weigh pauses, limits or breakers, one at a time. All others are made by
-- functions/claim.sql.

-- name: next_due
SELECT ms(min(scheduled_at)) FROM jobs_live
WHERE status IN ({from stage}) AND waiting_on = 0;

-- name: stage
-- A job with an order key joins its line first; `queued_at` says whether it has.
WITH due AS MATERIALIZED (
    SELECT id FROM jobs_live
    WHERE status IN ({from stage}) AND waiting_on = 0 AND scheduled_at <= at(:now)
      AND (order_key IS NULL OR queued_at IS NOT NULL)
    ORDER BY scheduled_at LIMIT :limit
    FOR UPDATE SKIP LOCKED
)
UPDATE jobs_live
SET status = 'queued', queued_at = at(:now), updated_at = at(:now),
    rank = ms(scheduled_at) + (priority - 1) * :priority_weight::bigint
FROM due WHERE jobs_live.id = due.id;

-- name: first_lane
SELECT queue, tenant_id, type, limit_key FROM jobs_live WHERE status = 'queued'
ORDER BY queue, tenant_id, type, limit_key LIMIT 1;

-- name: next_lane
SELECT queue, tenant_id, type, limit_key FROM jobs_live
WHERE status = 'queued' AND (queue, tenant_id, type, limit_key) > (?, ?, ?, ?)
ORDER BY queue, tenant_id, type, limit_key LIMIT 1;

-- name: adopt_lane
-- No older version ever wrote here: there is nothing to adopt.
UPDATE jobs_live SET limit_key = ''
WHERE status = 'queued' AND queue = ? AND tenant_id = ? AND type = ? AND limit_key IS NULL;

-- The index has the jobs of one priority in the order of their ranks: a lane is the ten of them. A
-- chunk goes on behind the last job of the one before and not behind so many jobs: others commit in
-- between, and a more urgent job would move the rest.

-- name: lane
WITH asked AS (
    SELECT ?::text AS queue, ?::text AS tenant_id, ?::text AS type, ?::text AS limit_key,
        coalesce(?::int, 10) AS max_priority, ?::bigint AS rank, ?::bigint AS seq, ?::bigint AS jobs
)
SELECT coalesce(json_agg(json_build_array(rank, seq, id)), '[]')::text FROM (
    SELECT found.rank, found.seq, found.id
    FROM asked CROSS JOIN generate_series(1, asked.max_priority) AS priority CROSS JOIN LATERAL (
        SELECT rank, seq, id FROM jobs_live
        WHERE status = 'queued' AND jobs_live.queue = asked.queue
          AND jobs_live.tenant_id = asked.tenant_id AND jobs_live.type = asked.type
          AND jobs_live.limit_key = asked.limit_key AND jobs_live.priority = priority.priority
          AND (jobs_live.rank, jobs_live.seq) > (asked.rank, asked.seq)
        ORDER BY rank, seq LIMIT asked.jobs
    ) AS found
    ORDER BY found.rank, found.seq LIMIT (SELECT jobs FROM asked)
) AS waiting;

-- name: start
UPDATE jobs_live SET started_at = at(:now)
FROM (
    SELECT lease ->> 0 AS id, (lease ->> 1)::bigint AS fence
    FROM jsonb_array_elements(:started::jsonb) AS lease
) AS started
WHERE jobs_live.id = started.id AND jobs_live.fence = started.fence
  AND jobs_live.lease_owner = :owner AND jobs_live.status = 'in_progress'
  AND jobs_live.started_at IS NULL;
