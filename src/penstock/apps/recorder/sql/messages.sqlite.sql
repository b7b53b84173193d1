-- name: add_numbered_hundred
INSERT INTO recorder_messages (
    id, tenant_id, person, conversation_id, platform, session_id, event_id, role, content,
    content_hash, sequence, created_at, token_count, metadata
)
VALUES {100 times (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)}
ON CONFLICT (id) DO NOTHING;

-- name: index_later
-- From here on, new messages are not indexed one by one.
INSERT INTO recorder_positions (id, kind, position, mark, at, updated_at)
SELECT 'words', 'index', coalesce(max(n), 0), '', 0, 0 FROM recorder_messages;

-- name: index_now
INSERT INTO recorder_words (rowid, content)
SELECT n, substr(content, 1, 20000) FROM recorder_messages
WHERE n > (SELECT position FROM recorder_positions WHERE id = 'words');

-- name: index_at_once
DELETE FROM recorder_positions WHERE id = 'words';
