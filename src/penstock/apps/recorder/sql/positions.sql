-- name: position
SELECT id, kind, position, mark, at FROM recorder_positions WHERE id = ?;

-- name: keep_position
INSERT INTO recorder_positions (id, kind, position, mark, at, updated_at)
VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET position = excluded.position, mark = excluded.mark,
    at = excluded.at, updated_at = excluded.updated_at;

-- name: hashes_by_hooks
SELECT content_hash FROM recorder_messages
WHERE conversation_id = ? AND event_id NOT LIKE 'transcript-%';

-- name: hashes_by_others
SELECT content_hash FROM recorder_messages
WHERE conversation_id = ? AND event_id NOT LIKE 'telemetry-%';

-- name: sessions_to_follow
-- Sessions that were at work lately and wait for somebody: their latest turn has ended.
SELECT c.session_id FROM recorder_conversations c
WHERE c.platform = ? AND c.tenant_id = '' AND c.last_at >= ? AND NOT EXISTS (
    SELECT 1 FROM recorder_turns t
    WHERE t.conversation_id = c.id AND t.status = 'open' AND t.agent_id IS NULL
)
ORDER BY c.last_at DESC LIMIT 100;
