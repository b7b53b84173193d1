-- name: tell_ingest
INSERT INTO events_ingest (
    name, owner, seen_at, progress_at, events, errors, failing_since, stages
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET
    owner = excluded.owner, seen_at = excluded.seen_at, progress_at = excluded.progress_at,
    events = excluded.events, errors = excluded.errors, failing_since = excluded.failing_since,
    stages = excluded.stages;

-- name: ingests
SELECT name, owner, seen_at, progress_at, events, errors, failing_since, stages
FROM events_ingest ORDER BY name;

-- name: to_mirror
SELECT sequence, event_id, timestamp, ingested_at, event_type, session_id, platform, tenant_id,
    slot, priority
FROM events_log WHERE sequence > ? AND codec <> 'erased' ORDER BY sequence LIMIT ?;

-- name: letters_to_mirror
{part letter} WHERE mirrored = 0 ORDER BY id LIMIT ?;

-- name: letter_mirrored
UPDATE events_dead SET mirrored = 1 WHERE id = ?;

-- name: fall_out
INSERT INTO events_groups (name, resume_after, fallen_at) VALUES (?, ?, ?)
ON CONFLICT (name) DO UPDATE
SET resume_after = excluded.resume_after, fallen_at = excluded.fallen_at;

-- name: fallen_groups
SELECT name, resume_after, fallen_at FROM events_groups ORDER BY name;

-- name: group_returned
DELETE FROM events_groups WHERE name = ?;

-- name: loose
-- Bodies that are compressed otherwise than they are to be.
SELECT sequence, timestamp, platform, codec, event_data FROM events_log
WHERE codec IN ('raw', 'zlib') AND codec <> ? AND sequence > ? ORDER BY sequence LIMIT ?;

-- name: recompress
-- Unless it was erased meanwhile.
UPDATE events_log SET codec = ?, event_data = ?
WHERE sequence = ? AND timestamp = ? AND codec = ?;
