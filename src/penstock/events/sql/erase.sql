-- name: tenant_to_erase
-- Whoever is not meant is NULL; the first condition of each of these is that of an index.
{part to_erase}
WHERE tenant_id = :tenant AND tenant_id <> '' AND {part not_erased} AND {part whose}
ORDER BY sequence LIMIT :limit;

-- name: person_to_erase
{part to_erase}
WHERE person = :person AND {part not_erased} AND {part whose}
ORDER BY sequence LIMIT :limit;

-- name: session_to_erase
{part to_erase}
WHERE session_id = :session_id AND {part not_erased} AND {part whose}
ORDER BY sequence LIMIT :limit;

-- name: tombstone
-- What is left keeps the place of an event, its slot, and the id that it is known by when it comes
-- again. Without its tenant it may look like another one: then its id says which it is.
UPDATE events_log SET
    event_id = CASE WHEN tenant_id <> CAST(:left_to AS TEXT) AND EXISTS (
        SELECT 1 FROM events_log AS other
        WHERE other.event_id = events_log.event_id AND other.timestamp = events_log.timestamp
            AND other.tenant_id = CAST(:left_to AS TEXT)
    ) THEN event_id || ' ' || sequence ELSE event_id END,
    session_id = event_id, person = NULL, tenant_id = coalesce(CAST(:left_to AS TEXT), tenant_id),
    workspace_hash = NULL, project_name = NULL, uuid = NULL, parent_uuid = NULL, request_id = NULL,
    agent_id = NULL, is_sidechain = NULL, cwd = NULL, version = NULL, git_branch = NULL,
    message_role = NULL, message_model = NULL, message_id = NULL, input_tokens = NULL,
    output_tokens = NULL, cache_creation_input_tokens = NULL, cache_read_input_tokens = NULL,
    duration_ms = NULL, tokens_used = NULL, tool_calls_count = NULL, codec = 'erased',
    event_data = :nothing
WHERE sequence = :sequence AND timestamp = :timestamp AND codec <> 'erased';

-- name: bury_unseen
-- The place of an event that was erased before it came into the log.
INSERT INTO events_log (
    event_id, timestamp, ingested_at, event_type, session_id, platform, tenant_id, slot, priority,
    codec, event_data
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 'erased', ?)
ON CONFLICT (event_id, timestamp, tenant_id) DO NOTHING;

-- name: count_erasure
INSERT INTO events_erasures (id, happened) VALUES (1, 1)
ON CONFLICT (id) DO UPDATE SET happened = events_erasures.happened + 1;

-- name: erasures
SELECT {part erasures};

-- name: erase_dead
DELETE FROM events_dead
WHERE (CAST(:session_id AS TEXT) IS NULL OR session_id = :session_id) AND {part whose};

-- name: erase_series
DELETE FROM events_series
WHERE (CAST(:session_id AS TEXT) IS NULL OR session_id = :session_id) AND {part whose};

-- name: erase_samples
DELETE FROM events_samples
WHERE (CAST(:session_id AS TEXT) IS NULL OR session_id = :session_id) AND {part whose};

-- name: mark_erased
INSERT INTO events_marks (
    consumer, tenant_id, platform, session_id, slot, mark, reason, since, marked_at
)
VALUES (?, ?, ?, ?, ?, 'behind', ?, ?, ?)
ON CONFLICT (consumer, tenant_id, platform, session_id) DO UPDATE
SET mark = excluded.mark, reason = excluded.reason;

-- name: look_again
-- Whoever has fetched events of a slot and not yet applied them fetches them again.
UPDATE events_cursors SET marks = marks + 1 WHERE slot = ?;

-- name: doom_jobs
UPDATE events_jobs SET erasing = 1 WHERE sequence = ? AND jobs <> '';

-- name: doomed_jobs
SELECT consumer, sequence, n, jobs FROM events_jobs WHERE erasing = 1 LIMIT ?;

-- name: forget_jobs
UPDATE events_jobs SET jobs = '', erasing = 0 WHERE consumer = ? AND sequence = ? AND n = ?;

-- name: reset_marks
-- Sessions that an erasure left to be made anew.
SELECT consumer, tenant_id, platform, session_id FROM events_marks
WHERE reason = ? AND (consumer, tenant_id, platform, session_id) > (?, ?, ?, ?)
ORDER BY consumer, tenant_id, platform, session_id LIMIT ?;

-- name: forget_reasons
-- Why an event was given up may say what was in it.
UPDATE events_marks SET reason = '' WHERE tenant_id = ? AND platform = ? AND session_id = ?;

-- name: consumer_names
SELECT name FROM events_consumers ORDER BY name;

-- part: erasures
coalesce((SELECT happened FROM events_erasures), 0)

-- part: to_erase
SELECT sequence, event_id, timestamp, slot, tenant_id, platform, session_id FROM events_log

-- part: not_erased
sequence > :after AND codec <> 'erased'

-- part: whose
(CAST(:platform AS TEXT) IS NULL OR platform = :platform)
    AND (CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant)
    AND (CAST(:person AS TEXT) IS NULL OR person = :person)

-- name: rewrite
-- A body that something was taken out of, if it is still the one that was read.
UPDATE events_log SET
    workspace_hash = ?, project_name = ?, uuid = ?, parent_uuid = ?, request_id = ?, agent_id = ?,
    is_sidechain = ?, cwd = ?, version = ?, git_branch = ?, message_role = ?, message_model = ?,
    message_id = ?, input_tokens = ?, output_tokens = ?, cache_creation_input_tokens = ?,
    cache_read_input_tokens = ?, duration_ms = ?, tokens_used = ?, tool_calls_count = ?,
    codec = ?, event_data = ?
WHERE sequence = ? AND timestamp = ? AND event_data = ?;

-- name: letter_texts
SELECT id, reason, document FROM events_dead
WHERE tenant_id = ? AND platform = ? AND session_id = ?;

-- name: rewrite_letter
UPDATE events_dead SET reason = ?, document = ? WHERE id = ?;
