-- What people are shown of the pipeline, and what they change in it.

-- name: positions
-- How far the slots of each consumer have come, on average.
SELECT consumer, CAST(sum(position) AS DOUBLE PRECISION) / count(*)
FROM events_cursors GROUP BY consumer;

-- name: recent
-- How many of the last events came lately, and when the first of those did.
SELECT count(*), min(ingested_at) FROM events_log WHERE sequence > :after AND ingested_at > :since;

-- name: count_sessions
-- About how many sessions there are, counted up to a limit: one look at the index for each, however
-- many events it has.
WITH RECURSIVE sessions (session_id, n) AS (
    SELECT min(session_id), 1 FROM events_log
    UNION ALL
    SELECT (SELECT min(session_id) FROM events_log WHERE session_id > sessions.session_id), n + 1
    FROM sessions WHERE session_id IS NOT NULL AND n < :most
)
SELECT count(session_id) FROM sessions;

-- name: keep_jobs
-- The jobs of a consumer that is forgotten go with their events all the same.
UPDATE events_jobs SET consumer = ? WHERE consumer = ? AND jobs <> '';

-- name: forget_jobs_of
DELETE FROM events_jobs WHERE consumer = ?;

-- name: forget_cursors_of
DELETE FROM events_cursors WHERE consumer = ?;

-- name: forget_members_of
DELETE FROM events_members WHERE consumer = ?;

-- name: forget_marks_of
DELETE FROM events_marks WHERE consumer = ?;

-- name: forget_letters_of
DELETE FROM events_dead WHERE source = ?;

-- name: forget_readings_of
DELETE FROM events_readings WHERE consumer = ?;

-- name: forget_series_of
DELETE FROM events_series WHERE consumer = ?;

-- name: forget_samples_of
DELETE FROM events_samples WHERE consumer = ?;

-- name: forget_consumer
DELETE FROM events_consumers WHERE name = ?;

-- name: letters_of_session
SELECT count(*) FROM events_dead
WHERE source = ? AND tenant_id = ? AND platform = ? AND session_id = ?;

-- name: by_sequence
{part event} WHERE sequence = :sequence AND codec <> 'erased';

-- name: last_events
{part event} WHERE {part shown} ORDER BY sequence DESC LIMIT :limit;

-- name: last_of_tenant
{part event}
WHERE tenant_id = :tenant AND tenant_id <> '' AND {part shown} ORDER BY sequence DESC LIMIT :limit;

-- name: last_of_session
{part event} WHERE session_id = :session_id AND {part shown} ORDER BY sequence DESC LIMIT :limit;

-- part: shown
(CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant)
    AND (CAST(:event_type AS TEXT) IS NULL OR event_type = :event_type)
    AND (CAST(:platform AS TEXT) IS NULL OR platform = :platform)
