-- name: add_to_series
INSERT INTO events_series (
    id, name, labels, tenant_id, person, consumer, platform, session_id, begins_at, step, count,
    total, updated_at
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE
SET count = events_series.count + excluded.count, total = events_series.total + excluded.total,
    updated_at = excluded.updated_at;

-- name: set_series
-- A gauge: the last value stands.
INSERT INTO events_series (
    id, name, labels, tenant_id, person, consumer, platform, session_id, begins_at, step, count,
    total, updated_at
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE
SET count = events_series.count + excluded.count, total = excluded.total,
    updated_at = excluded.updated_at;

-- name: keep_sample
INSERT INTO events_samples (
    id, name, labels, tenant_id, person, consumer, platform, session_id, at, value
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET value = excluded.value;

-- name: trim_samples
-- The window slides: what is older than its last values goes.
DELETE FROM events_samples
WHERE name = :name AND labels = :labels AND tenant_id = :tenant_id AND id <= (
    SELECT id FROM events_samples
    WHERE name = :name AND labels = :labels AND tenant_id = :tenant_id
    ORDER BY id DESC LIMIT 1 OFFSET :size
);

-- name: series
SELECT labels, step, sum(count), sum(total) FROM events_series
WHERE name = :name AND begins_at >= :since AND begins_at < :until AND {part of_tenant}
GROUP BY labels, step ORDER BY labels, step;

-- name: last_of_series
SELECT labels, count, total FROM events_series
WHERE name = :name AND begins_at >= :since AND begins_at < :until AND {part of_tenant}
ORDER BY begins_at, updated_at;

-- name: points
SELECT begins_at, labels, sum(count), sum(total) FROM events_series
WHERE name = :name AND begins_at >= :since AND begins_at < :until AND {part of_tenant}
GROUP BY begins_at, labels ORDER BY begins_at, labels;

-- name: samples
SELECT labels, value FROM events_samples
WHERE name = :name AND at >= :since AND at < :until AND {part of_tenant} ORDER BY id;

-- name: changed_series
SELECT name, begins_at, max(updated_at) FROM events_series WHERE updated_at >= ?
GROUP BY name, begins_at ORDER BY max(updated_at), name, begins_at LIMIT ?;

-- name: changed_samples
SELECT DISTINCT name FROM events_samples WHERE at >= ? ORDER BY name;

-- name: prune_series
DELETE FROM events_series WHERE name = ? AND begins_at < ?;

-- name: prune_samples
DELETE FROM events_samples WHERE name = ? AND at < ?;

-- name: reset_series
DELETE FROM events_series
WHERE session_id = :session_id AND platform = :platform AND tenant_id = :tenant_id
    AND (CAST(:consumer AS TEXT) IS NULL OR consumer = :consumer);

-- name: reset_samples
DELETE FROM events_samples
WHERE session_id = :session_id AND platform = :platform AND tenant_id = :tenant_id
    AND (CAST(:consumer AS TEXT) IS NULL OR consumer = :consumer);

-- part: of_tenant
(CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant)
