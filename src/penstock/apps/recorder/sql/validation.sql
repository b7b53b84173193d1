-- name: session_of
SELECT tenant_id, platform, session_id, person FROM recorder_messages
WHERE conversation_id = ? LIMIT 1;

-- name: unvalidated
SELECT id, content, event_id, sequence, created_at FROM recorder_messages
WHERE conversation_id = ? AND validated IS NULL ORDER BY sequence LIMIT ?;

-- name: contents_of
SELECT id, content FROM recorder_messages WHERE conversation_id = ?;

-- name: change_message
UPDATE recorder_messages SET content = ?, content_hash = ? WHERE id = ?;
