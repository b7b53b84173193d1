-- name: feed
{part event}
WHERE sequence > :after AND sequence <= :head AND slot BETWEEN :first AND :last
    AND codec <> 'erased' AND {part among}
ORDER BY sequence LIMIT :limit;

-- name: open_slots
INSERT INTO events_cursors (consumer, slot, position, epoch, owner, lease_until, marks)
VALUES (?, ?, ?, 0, NULL, 0, 0) ON CONFLICT (consumer, slot) DO NOTHING;

-- name: count_slots
SELECT count(*) FROM events_cursors WHERE consumer = ?;

-- name: claim_slots
-- Those that nobody holds, or whose holder has not been heard of; a lease that ends later than one
-- given now was given before the clock was set back.
UPDATE events_cursors SET owner = :owner, epoch = epoch + 1, lease_until = :until
WHERE consumer = :consumer AND slot BETWEEN :first AND :last
    AND (owner IS NULL OR lease_until < :now OR lease_until > :until)
RETURNING slot, position, marks;

-- name: move_slots
UPDATE events_cursors SET position = :to, lease_until = :until
WHERE consumer = :consumer AND slot BETWEEN :first AND :last
    AND owner = :owner AND position = :position
RETURNING marks;

-- name: renew_slots
UPDATE events_cursors SET lease_until = :until WHERE consumer = :consumer AND owner = :owner;

-- name: release_slots
UPDATE events_cursors SET owner = NULL, lease_until = 0
WHERE consumer = :consumer AND slot BETWEEN :first AND :last AND owner = :owner;

-- name: slot
-- Until the commit nobody moves it.
UPDATE events_cursors SET marks = marks + 1 WHERE consumer = ? AND slot = ? RETURNING position;

-- name: slot_of
-- The same to look at, and how many files of archived events there are.
SELECT position, marks, (
        SELECT count(*) FROM events_archives WHERE subject = 'events' AND state = 'whole'
    )
FROM events_cursors WHERE consumer = ? AND slot = ?;

-- name: cursors
SELECT slot, position, owner, lease_until FROM events_cursors WHERE consumer = ? ORDER BY slot;

-- name: see_member
INSERT INTO events_members (consumer, member, workers, seen_at) VALUES (?, ?, ?, ?)
ON CONFLICT (consumer, member) DO UPDATE SET workers = excluded.workers, seen_at = excluded.seen_at;

-- name: forget_members
DELETE FROM events_members WHERE consumer = ? AND (member = ? OR seen_at < ?);

-- name: members
SELECT member FROM events_members WHERE consumer = ? AND seen_at BETWEEN ? AND ? ORDER BY member;

-- name: declare_consumer
-- What is declared otherwise than before holds at once; the rest stays as the pressure has it.
INSERT INTO events_consumers (
    name, role, created_at, types, partitions, starts, minimum, maximum, own_batch, own_timeout_ms,
    sized, paused, held, run_at, resumes, workers, batch, timeout_ms, enriches, sheds_from
)
VALUES (
    :name, :role, :now, :types, :partitions, :workers, :minimum, :maximum, :batch, :timeout_ms,
    :workers, 0, 0, :now, 0, :workers, :batch, :timeout_ms, 1, NULL
)
ON CONFLICT (name) DO UPDATE
SET role = excluded.role, run_at = excluded.run_at, types = excluded.types, partitions = excluded.partitions,
    starts = excluded.starts, minimum = excluded.minimum, maximum = excluded.maximum,
    own_batch = excluded.own_batch, own_timeout_ms = excluded.own_timeout_ms,
    sized = CASE WHEN events_consumers.starts = excluded.starts
        THEN events_consumers.sized ELSE excluded.sized END,
    workers = CASE WHEN events_consumers.starts = excluded.starts
        THEN events_consumers.workers ELSE excluded.workers END,
    batch = CASE WHEN events_consumers.own_batch = excluded.own_batch
        THEN events_consumers.batch ELSE excluded.batch END,
    timeout_ms = CASE WHEN events_consumers.own_timeout_ms = excluded.own_timeout_ms
        THEN events_consumers.timeout_ms ELSE excluded.timeout_ms END;

-- name: control
SELECT paused + held, workers, batch, timeout_ms, enriches, sheds_from
FROM events_consumers WHERE name = ?;

-- name: pause_consumer
UPDATE events_consumers
SET resumes = CASE WHEN paused = 0 THEN resumes ELSE 1 END, paused = ? WHERE name = ?;

-- name: shed
UPDATE events_consumers SET sheds_from = ? WHERE name = ?;

-- name: marks
SELECT tenant_id, platform, session_id, mark FROM events_marks
WHERE consumer = ? AND slot BETWEEN ? AND ?;

-- name: count_marks
-- What the holder of some slots has seen of the marks of their sessions.
SELECT coalesce(sum(marks), 0) FROM events_cursors
WHERE consumer = ? AND slot BETWEEN ? AND ?;

-- name: mark
-- A graver mark takes the place of another: what is put off begins with its own first event.
INSERT INTO events_marks (
    consumer, tenant_id, platform, session_id, slot, mark, reason, since, marked_at
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (consumer, tenant_id, platform, session_id) DO UPDATE
SET mark = excluded.mark, reason = excluded.reason, since = excluded.since
WHERE (events_marks.mark = 'unenriched' AND excluded.mark <> 'unenriched')
    OR (events_marks.mark = 'incomplete' AND excluded.mark IN ('waiting', 'behind'));

-- name: unmark
DELETE FROM events_marks
WHERE consumer = ? AND tenant_id = ? AND platform = ? AND session_id = ?;

-- name: marked
SELECT consumer, tenant_id, platform, session_id, mark, reason, since, marked_at FROM events_marks
WHERE (CAST(:consumer AS TEXT) IS NULL OR consumer = :consumer)
    AND (CAST(:mark AS TEXT) IS NULL OR mark = :mark)
ORDER BY marked_at, consumer, session_id LIMIT :limit;

-- name: mark_of
SELECT mark, since FROM events_marks
WHERE consumer = ? AND tenant_id = ? AND platform = ? AND session_id = ?;

-- name: record_job
INSERT INTO events_jobs (consumer, sequence, n, jobs, erasing) VALUES (?, ?, ?, '', 0)
ON CONFLICT (consumer, sequence, n) DO NOTHING;

-- name: name_jobs
UPDATE events_jobs SET jobs = ? WHERE consumer = ? AND sequence = ? AND n = ?;

-- name: session_until
-- A session's events that a consumer has come past.
{part event}
WHERE session_id = :session_id AND tenant_id = :tenant_id AND platform = :platform
    AND sequence > :after AND sequence <= :until AND codec <> 'erased' AND {part among}
ORDER BY sequence LIMIT :limit;

-- name: sessions_after
SELECT DISTINCT session_id, platform, tenant_id FROM events_log
WHERE (session_id, platform, tenant_id) > (?, ?, ?) AND codec <> 'erased'
ORDER BY session_id, platform, tenant_id LIMIT ?;

-- name: next_sequence
-- The first event that waits for a consumer, and since when.
SELECT sequence, ingested_at FROM events_log WHERE sequence > ? ORDER BY sequence LIMIT 1;

-- name: bury
INSERT INTO events_dead (
    id, source, sequence, event_id, event_type, platform, session_id, tenant_id, person, reason,
    tries, size, sha256, failed_at, document
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO NOTHING;

-- name: dead
{part letter}
WHERE (CAST(:source AS TEXT) IS NULL OR source = :source)
    AND (CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant) AND id < :before
ORDER BY id DESC LIMIT :limit;

-- name: letter
{part letter} WHERE id = ?;

-- name: unbury
DELETE FROM events_dead WHERE id = ?;

-- name: unbury_session
-- Those that a replay has applied; a consumer that cannot reset a session begins in the middle.
DELETE FROM events_dead
WHERE source = ? AND tenant_id = ? AND platform = ? AND session_id = ? AND sequence > ?;

-- name: given_up
SELECT sequence, reason FROM events_dead
WHERE source = ? AND tenant_id = ? AND platform = ? AND session_id = ? AND sequence IS NOT NULL;

-- name: count_dead
SELECT source, count(*) FROM events_dead GROUP BY source ORDER BY source;

-- part: letter
SELECT id, source, sequence, event_id, event_type, platform, session_id, tenant_id, person, reason,
    tries, size, sha256, failed_at, document
FROM events_dead
