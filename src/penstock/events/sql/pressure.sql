-- name: consumers
SELECT name, role, types, partitions, starts, minimum, maximum, own_batch, own_timeout_ms, sized,
    paused, held, run_at, resumes, workers, batch, timeout_ms, enriches, sheds_from
FROM events_consumers ORDER BY name;

-- name: control_consumer
UPDATE events_consumers
SET sized = :sized, workers = :workers, batch = :batch, timeout_ms = :timeout_ms, held = :held,
    run_at = :run_at, resumes = :resumes, enriches = :enriches, sheds_from = :sheds_from
WHERE name = :name;

-- name: least_position
SELECT coalesce(min(position), 0) FROM events_cursors WHERE consumer = ?;

-- name: waiting_between
-- How many events of some sequences wait for a consumer, and since when the first of them does.
SELECT count(*), min(ingested_at)
FROM events_log JOIN events_cursors
    ON events_cursors.consumer = :consumer AND events_cursors.slot = events_log.slot
WHERE sequence > :after AND sequence <= :until AND sequence > position AND {part among};

-- name: running_workers
SELECT consumer, sum(workers) FROM events_members WHERE seen_at >= ? GROUP BY consumer;

-- name: count_marked
SELECT consumer, mark, count(*) FROM events_marks GROUP BY consumer, mark;

-- name: sessions_to_make_anew
SELECT tenant_id, platform, session_id FROM events_marks
WHERE consumer = ? AND mark IN ('behind', 'unenriched') ORDER BY since LIMIT ?;

-- name: session_from
SELECT tenant_id, platform, session_id FROM events_log
WHERE sequence >= ? AND codec <> 'erased' ORDER BY sequence LIMIT 1;

-- name: keep_reading
INSERT INTO events_readings (consumer, at, depth, lag_ms, state) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (consumer, at) DO UPDATE
SET depth = excluded.depth, lag_ms = excluded.lag_ms, state = excluded.state;

-- name: readings_since
SELECT consumer, at, depth, lag_ms, state FROM events_readings WHERE at > ? ORDER BY at;

-- name: last_check
SELECT max(at) FROM events_readings;

-- name: forget_readings
DELETE FROM events_readings WHERE at < ?;

-- name: keep_level
INSERT INTO events_levels (at, level, reason) VALUES (?, ?, ?)
ON CONFLICT (at) DO UPDATE SET level = excluded.level, reason = excluded.reason;

-- name: levels
SELECT at, level, reason FROM events_levels ORDER BY at DESC LIMIT ?;

-- name: forget_levels
DELETE FROM events_levels WHERE at < ?;
