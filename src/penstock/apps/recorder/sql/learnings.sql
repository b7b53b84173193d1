-- name: add_learning
-- Somebody may have found the same meanwhile; then it is there already.
INSERT INTO recorder_learnings (
    id, tenant_id, person, conversation_id, platform, session_id, source_message_ids, category,
    title, content, confidence, tags, dedupe_hash, status, source, created_at, revision, metadata
)
VALUES (:id, :tenant_id, :person, :conversation_id, :platform, :session_id, :source_message_ids,
    :category, :title, :content, :confidence, :tags, :dedupe_hash, 'proposed', :source,
    :created_at, :revision, :metadata)
ON CONFLICT DO NOTHING;

-- name: decide_learning
UPDATE recorder_learnings SET status = :status, decided_by = :by, decided_at = :at,
    revision = :revision
WHERE id = :id AND revision < :revision;

-- name: edit_learning
UPDATE recorder_learnings SET category = :category, title = :title, content = :content,
    tags = :tags, dedupe_hash = :dedupe_hash, edited_at = :at, revision = :revision
WHERE id = :id AND revision < :revision;

-- name: supersede_learning
UPDATE recorder_learnings SET status = 'superseded', superseded_by = :superseded_by,
    revision = :revision
WHERE id = :id AND revision < :revision;

-- name: add_extraction
INSERT INTO recorder_extractions (
    conversation_id, version, tenant_id, person, outcome, value, learnings, source, extracted_at
)
VALUES (:conversation_id, :version, :tenant_id, :person, :outcome, :value, :learnings, :source,
    :extracted_at)
ON CONFLICT DO NOTHING;

-- name: extraction
SELECT outcome FROM recorder_extractions WHERE conversation_id = ? AND version = ?;

-- name: forget_learnings
DELETE FROM recorder_learnings WHERE conversation_id = ?;

-- name: forget_extractions
DELETE FROM recorder_extractions WHERE conversation_id = ?;

-- name: forget_due
DELETE FROM recorder_due WHERE conversation_id = ?;

-- name: learnings_digest
SELECT id, category, title, content, confidence, tags, dedupe_hash, status, source, superseded_by,
    created_at, edited_at, decided_by, decided_at, revision
FROM recorder_learnings WHERE conversation_id = ? ORDER BY id;

-- name: list_learnings
{part learning} WHERE {part wanted_learnings};

-- name: find_learnings
{part learning} WHERE {part found_learnings} AND {part wanted_learnings};

-- name: get_learning
{part learning} WHERE l.id >= :id AND l.id < :beyond
    AND (CAST(:tenant AS TEXT) IS NULL OR l.tenant_id = :tenant)
LIMIT 2;

-- name: learning_at
SELECT created_at FROM recorder_learnings WHERE id = ?;

-- name: same_learning
SELECT id FROM recorder_learnings WHERE tenant_id = ? AND dedupe_hash = ? AND id <> ?;

-- name: count_learnings
SELECT status, count(*) FROM recorder_learnings
WHERE CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant GROUP BY status;

-- name: learnings_to_compare
-- Those that a new one of the same category may repeat or replace, the latest first.
SELECT id, platform, session_id, person, title, content, dedupe_hash, status
FROM recorder_learnings
WHERE tenant_id = ? AND category = ? AND status <> 'superseded'
ORDER BY created_at DESC LIMIT ?;

-- part: learning
SELECT l.id, l.tenant_id, l.conversation_id, l.source_message_ids, l.category, l.title, l.content,
    l.confidence, l.tags, l.status, l.source, l.created_at, l.edited_at, l.decided_by,
    l.decided_at, l.superseded_by, l.platform, l.session_id, l.person, u.status, u.ipfs_cid,
    u.chain_tx_hash, u.chain_id, u.block_number, u.retries, u.last_error, u.updated_at,
    u.confirmed_at, r.revoked_at
FROM recorder_learnings l
LEFT JOIN recorder_uploads u ON u.learning_id = l.id
LEFT JOIN recorder_revocations r ON r.learning_id = l.id

-- part: wanted_learnings
(CAST(:tenant AS TEXT) IS NULL OR l.tenant_id = :tenant)
    AND (CAST(:status AS TEXT) IS NULL OR l.status = :status)
    AND (CAST(:category AS TEXT) IS NULL OR l.category = :category)
    AND (CAST(:conversation_id AS TEXT) IS NULL OR l.conversation_id = :conversation_id)
    AND (l.created_at, l.id) < (:before_at, :before_id)
ORDER BY l.created_at DESC, l.id DESC LIMIT :limit
