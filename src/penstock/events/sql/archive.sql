-- name: to_archive
-- Rows of a month in the order in which parts are cut; the last event of the log stays in it, so
-- that sequences go on after it wherever the log is moved.
SELECT {part archived}, event_data FROM events_log
WHERE timestamp >= :after_at AND timestamp < :until AND sequence < :below
    AND (timestamp > :after_at OR sequence > :after_sequence)
ORDER BY timestamp, sequence LIMIT :limit;

-- name: live_rows
SELECT {part archived}, event_data FROM events_log
WHERE sequence > :after AND timestamp >= :since AND timestamp < :until AND codec <> 'erased'
    AND (CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant)
ORDER BY sequence LIMIT :limit;

-- name: live_rows_of_tenant
SELECT {part archived}, event_data FROM events_log
WHERE tenant_id = :tenant AND tenant_id <> '' AND sequence > :after AND timestamp >= :since
    AND timestamp < :until AND codec <> 'erased'
ORDER BY sequence LIMIT :limit;

-- name: first_to_archive
SELECT min(timestamp) FROM events_log
WHERE timestamp >= :since AND timestamp < :until AND sequence < :below;

-- name: part_of_log
-- What the log has now of a part that was read before.
SELECT count(*), coalesce(sum(sequence), 0),
    coalesce(sum(CASE WHEN codec = 'erased' THEN 1 ELSE 0 END), 0)
FROM events_log WHERE {part within_part};

-- name: delete_part
DELETE FROM events_log WHERE {part within_part};

-- name: slowest
-- The consumer that is the farthest behind, and how far it has come.
SELECT consumer, position FROM events_cursors ORDER BY position LIMIT 1;

-- name: begin_archive
INSERT INTO events_archives (
    file, subject, state, first_at, last_at, last_sequence, row_count, erased_count, size, sha256,
    made_at
)
VALUES (?, ?, 'writing', 0, 0, 0, 0, 0, 0, '', ?);

-- name: finish_archive
UPDATE events_archives
SET state = :state, first_at = :first_at, last_at = :last_at, last_sequence = :last_sequence,
    row_count = :row_count, erased_count = :erased_count, size = :size, sha256 = :sha256
WHERE file = :file AND state = 'writing';

-- name: have_left
UPDATE events_archives SET state = 'whole' WHERE file = ? AND state = 'leaving';

-- name: give_up_archive
UPDATE events_archives SET state = 'going' WHERE file = ? AND state = ?;

-- name: give_up_broken
-- Those that nobody can still be writing.
UPDATE events_archives SET state = 'going' WHERE state = 'writing' AND made_at < ?;

-- name: give_up_writing
UPDATE events_archives SET state = 'going' WHERE state = 'writing';

-- name: forget_archive
-- One that never was whole may still be in the hands of who writes it.
DELETE FROM events_archives WHERE file = ? AND state = 'going' AND (row_count > 0 OR made_at < ?);

-- name: forget_unfinished
DELETE FROM events_archives WHERE file = ? AND state <> 'whole';

-- name: archives
SELECT file, subject, state, first_at, last_at, last_sequence, row_count, erased_count, size,
    sha256, made_at
FROM events_archives WHERE state = ? ORDER BY first_at, file;

-- name: archive_bytes
SELECT coalesce(sum(size), 0) FROM events_archives WHERE state IN ('leaving', 'whole');

-- part: archived_until
-- No event of a later time was archived.
(SELECT max(last_at) FROM events_archives WHERE subject = 'events' AND state = 'whole')

-- part: archived
sequence, event_id, timestamp, ingested_at, event_type, session_id, platform, tenant_id, person,
    slot, priority, workspace_hash, project_name, uuid, parent_uuid, request_id, agent_id,
    is_sidechain, cwd, version, git_branch, message_role, message_model, message_id, input_tokens,
    output_tokens, cache_creation_input_tokens, cache_read_input_tokens, duration_ms, tokens_used,
    tool_calls_count, codec

-- part: within_part
timestamp >= :first_at AND timestamp <= :last_at AND sequence < :below
    AND (timestamp > :first_at OR sequence >= :first_sequence)
    AND (timestamp < :last_at OR sequence <= :last_sequence)
