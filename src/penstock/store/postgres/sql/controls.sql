-- name: gates
-- All that may hold a lane back, in one answer; next to nothing when there is none of it.
SELECT
    (SELECT coalesce(json_agg(json_build_array(scope, name)), '[]')::text FROM pauses
     WHERE scope IN ('queue', 'tenant', 'type')),
    (SELECT coalesce(json_agg(json_build_array(scope, name, kind, capacity, interval_ms)), '[]')::text
     FROM limits WHERE kind <> 'depth'),
    (SELECT coalesce(json_agg(json_build_array(
        name, types, failures, cool_down_ms, failed, ms(opened_at), probe_id)), '[]')::text
     FROM breakers);

-- name: leased_lanes
SELECT lease_owner, queue, tenant_id, type, limit_key, count(*), count(started_at)
FROM jobs_live WHERE status = 'in_progress' GROUP BY 1, 2, 3, 4, 5;

-- name: all_slots
SELECT scope, name, owner, slots FROM slots;

-- name: set_slots
INSERT INTO slots (scope, name, owner, slots) VALUES (?, ?, ?, ?)
ON CONFLICT (scope, name, owner) DO UPDATE SET slots = excluded.slots;

-- name: drop_slots
DELETE FROM slots WHERE scope = ? AND name = ? AND owner = ?;

-- name: drop_idle_slots
DELETE FROM slots WHERE NOT EXISTS (
    SELECT 1 FROM jobs_live WHERE status = 'in_progress' AND lease_owner = slots.owner);

-- name: rate_starts
SELECT starts::text FROM rate_starts WHERE scope = ? AND name = ?;

-- name: set_rate_starts
INSERT INTO rate_starts (scope, name, starts) VALUES (?, ?, ?::jsonb)
ON CONFLICT (scope, name) DO UPDATE SET starts = excluded.starts;

-- name: drop_old_starts
-- Starts that no rate looks back to any more; with a rate for each tenant they would pile up.
DELETE FROM rate_starts WHERE (starts -> -1 ->> 0)::bigint <= ?::bigint - coalesce(
    (SELECT max(interval_ms) FROM limits WHERE kind = 'rate' AND scope = rate_starts.scope), 0);

-- name: set_probe
UPDATE breakers SET probe_id = ?, updated_at = at(?) WHERE name = ?;

-- name: any_breaker
SELECT 1 FROM breakers LIMIT 1;

-- name: breakers
SELECT name, to_json(types)::text, failures, cool_down_ms, failed, ms(opened_at), probe_id
FROM breakers ORDER BY name;

-- name: breakers_to_change
SELECT name, to_json(types)::text, failures, cool_down_ms, failed, ms(opened_at), probe_id
FROM breakers ORDER BY name FOR UPDATE;

-- name: define_breaker
INSERT INTO breakers (name, types, failures, cool_down_ms, updated_at)
VALUES (?, ARRAY(SELECT json_array_elements_text(?::json)), ?, ?, at(?))
ON CONFLICT (name) DO UPDATE
SET types = excluded.types, failures = excluded.failures, cool_down_ms = excluded.cool_down_ms,
    updated_at = excluded.updated_at;

-- name: drop_breaker
DELETE FROM breakers WHERE name = ?;

-- name: set_breaker
UPDATE breakers SET failed = ?, opened_at = at(?), probe_id = ?, updated_at = at(?) WHERE name = ?;

-- name: pause
INSERT INTO pauses (scope, name, reason, paused_by, created_at) VALUES (?, ?, ?, ?, at(?))
ON CONFLICT (scope, name) DO NOTHING;

-- name: pause_of
SELECT scope, name, reason, paused_by, ms(created_at) FROM pauses WHERE scope = ? AND name = ?;

-- name: pauses
SELECT scope, name, reason, paused_by, ms(created_at) FROM pauses
ORDER BY pauses.created_at, scope, name;

-- name: resume
DELETE FROM pauses WHERE scope = ? AND name = ?;

-- name: forget_job_pause
DELETE FROM pauses WHERE scope = 'job' AND name = ANY(?::text[]);

-- name: pause_job
UPDATE jobs_live SET status = 'paused', updated_at = at(:now)
WHERE id = :id AND status IN ({from pause});

-- name: resume_job
UPDATE jobs_live SET status = 'pending', updated_at = at(:now)
WHERE id = :id AND status IN ({from resume});

-- name: set_limit
-- What code declares leaves an operator's limit alone.
INSERT INTO limits (scope, name, kind, capacity, interval_ms, by_operator, updated_at)
VALUES (?, ?, ?, ?, ?, ?, at(?))
ON CONFLICT (scope, name, kind) DO UPDATE
SET capacity = excluded.capacity, interval_ms = excluded.interval_ms,
    by_operator = excluded.by_operator, updated_at = excluded.updated_at
WHERE excluded.by_operator OR NOT limits.by_operator;

-- name: remove_limit
DELETE FROM limits WHERE scope = ? AND name = ? AND kind = ?;

-- name: limits
SELECT scope, name, kind, capacity, interval_ms, by_operator FROM limits ORDER BY scope, name, kind;

-- name: holders
SELECT id FROM jobs_live
WHERE status = 'in_progress'
  AND CASE :scope::text WHEN 'type' THEN type WHEN 'queue' THEN queue WHEN 'tenant' THEN tenant_id
      ELSE limit_key END = :name
ORDER BY started_at IS NULL, id LIMIT :limit;

-- name: queue_depth
SELECT count(*) FROM (
    SELECT 1 FROM jobs_live WHERE status = 'queued' AND queue = ? LIMIT ?) AS waiting;
