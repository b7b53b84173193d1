-- name: session_ended
INSERT INTO recorder_due (
    conversation_id, tenant_id, person, platform, session_id, ended_at, look_at
)
VALUES (:conversation_id, :tenant_id, :person, :platform, :session_id, :ended_at, :ended_at)
ON CONFLICT (conversation_id) DO UPDATE
SET ended_at = excluded.ended_at, look_at = excluded.look_at;

-- name: session_goes_on
-- Of a session that ended, what was said afterwards shows that it goes on.
INSERT INTO recorder_due (conversation_id, tenant_id, person, platform, session_id, look_at)
VALUES (:conversation_id, :tenant_id, :person, :platform, :session_id, :look_at)
ON CONFLICT (conversation_id) DO UPDATE SET
    look_at = CASE WHEN recorder_due.ended_at >= :said_at THEN recorder_due.look_at
        ELSE excluded.look_at END,
    ended_at = CASE WHEN recorder_due.ended_at >= :said_at THEN recorder_due.ended_at END;

-- name: hold_conversation
UPDATE recorder_due SET validated_by = :job, held_until = :until
WHERE conversation_id = :conversation_id
    AND (held_until IS NULL OR held_until < :now OR validated_by = :job);

-- name: let_go
UPDATE recorder_due SET validated_by = NULL, held_until = NULL
WHERE conversation_id = ? AND validated_by = ?;

-- name: due
SELECT conversation_id, tenant_id, person, platform, session_id, ended_at
FROM recorder_due WHERE look_at <= ? ORDER BY look_at LIMIT ?;

-- name: count_due
SELECT count(*) FROM recorder_due WHERE look_at <= ?;

-- name: due_of
SELECT conversation_id, tenant_id, person, platform, session_id, ended_at
FROM recorder_due WHERE conversation_id = ?;

-- name: look_later
UPDATE recorder_due SET look_at = ? WHERE conversation_id = ?;

-- name: last_heard
-- When something was last heard of a session, by its own events and not by ours about it.
SELECT max(timestamp) FROM events_log
WHERE session_id = ? AND platform = ? AND tenant_id = ? AND event_type NOT IN (
    'validation', 'redaction', 'extraction', 'approval', 'learning_edit', 'supersession',
    'revocation', 'model_answer'
);

-- name: stand_of
-- How many messages a conversation has, the last of them, and how many wait to be validated.
SELECT count(*), coalesce(max(sequence), 0), coalesce(sum(CASE WHEN validated IS NULL THEN 1
    ELSE 0 END), 0)
FROM recorder_messages WHERE conversation_id = ?;
