-- name: add_message
INSERT INTO recorder_messages (
    id, tenant_id, person, conversation_id, platform, session_id, event_id, role, content,
    content_hash, sequence, created_at, token_count, metadata
)
VALUES (:id, :tenant_id, :person, :conversation_id, :platform, :session_id, :event_id, :role,
    :content, :content_hash,
    (SELECT coalesce(max(sequence), 0) + 1 FROM recorder_messages
     WHERE conversation_id = :conversation_id),
    :created_at, :token_count, :metadata)
ON CONFLICT (id) DO NOTHING;

-- name: last_sequence
SELECT coalesce(max(sequence), 0) FROM recorder_messages WHERE conversation_id = ?;

-- name: add_numbered
-- For many messages at once, whose sequences were counted before; no other writer may be at it.
INSERT INTO recorder_messages (
    id, tenant_id, person, conversation_id, platform, session_id, event_id, role, content,
    content_hash, sequence, created_at, token_count, metadata
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO NOTHING;

-- name: add_redaction
INSERT INTO recorder_redactions (
    id, tenant_id, conversation_id, message_id, event_id, category, rule_id,
    original_snippet_hash, replacement, detector, confidence, created_at, metadata
)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO NOTHING;

-- name: messages_of
SELECT id, role, content, sequence, created_at, token_count, validated, metadata, event_id
FROM recorder_messages WHERE conversation_id = :conversation_id AND sequence > :after
ORDER BY sequence LIMIT :limit;

-- name: captured_before
-- An event that another hook has told of, which an assistant ran for the same.
SELECT 1 FROM events_log
WHERE event_id >= :first AND event_id <= :last AND timestamp >= :since AND timestamp <= :until
    AND tenant_id = :tenant_id
LIMIT 1;
