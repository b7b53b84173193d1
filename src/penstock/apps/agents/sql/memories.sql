-- name: add_memory
INSERT INTO agents_memories (
    id, tenant_id, workspace_id, user_id, memory_type, content, content_hash, embedding_id,
    source_type, source_id, importance, access_count, last_decayed_at, is_shared, expires_at,
    valid_from, metadata, created_at, updated_at
)
VALUES (:id, :tenant_id, :workspace_id, :user_id, :memory_type, :content, :content_hash, :id,
    :source_type, :source_id, :importance, 0, :now, :is_shared, :expires_at, :valid_from,
    :metadata, :now, :now)
ON CONFLICT (id) DO NOTHING;

-- name: get_memories
{part memory} WHERE m.id IN {part memory_ids} AND (CAST(:tenant AS TEXT) IS NULL OR m.tenant_id = :tenant);

-- name: same_memories
-- What somebody is known to hold now, in the same words.
{part memory}
WHERE m.tenant_id = :tenant AND m.content_hash IN {part memory_ids}
    AND m.valid_to IS NULL AND (m.expires_at IS NULL OR m.expires_at > :now)
ORDER BY m.created_at, m.id;

-- name: list_memories
{part memory}
WHERE (CAST(:tenant AS TEXT) IS NULL OR m.tenant_id = :tenant)
    AND (CAST(:user AS TEXT) IS NULL OR m.user_id = :user)
    AND (CAST(:workspace AS TEXT) IS NULL OR m.workspace_id = :workspace)
    AND (CAST(:memory_type AS TEXT) IS NULL OR m.memory_type = :memory_type)
    AND (CAST(:current AS INTEGER) IS NULL
        OR CASE WHEN m.valid_to IS NULL THEN 1 ELSE 0 END = :current)
    AND (m.created_at, m.id) < (:before_at, :before_id)
ORDER BY m.created_at DESC, m.id DESC LIMIT :limit;

-- name: memory_at
SELECT created_at FROM agents_memories WHERE id = ?;

-- name: count_memories
SELECT memory_type, CASE WHEN valid_to IS NULL THEN 1 ELSE 0 END, count(*) FROM agents_memories
WHERE CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant
GROUP BY 1, 2;

-- name: raise_importance
-- Somebody said it again: it matters at least as much as they say.
UPDATE agents_memories SET importance = :importance, updated_at = :now
WHERE id = :id AND importance < :importance;

-- name: edit_memory
UPDATE agents_memories SET content = :content, content_hash = :content_hash,
    importance = :importance, memory_type = :memory_type, is_shared = :is_shared,
    expires_at = :expires_at, metadata = :metadata, updated_at = :now
WHERE id = :id;

-- name: supersede_memory
-- The first to say so is believed: until when it held does not change again.
UPDATE agents_memories SET valid_to = :valid_to, superseded_at = :now, updated_at = :now
WHERE id = :id AND valid_to IS NULL;

-- name: count_access
UPDATE agents_memories SET access_count = access_count + 1, last_accessed_at = :now
WHERE id IN {part memory_ids};

-- name: delete_memories
DELETE FROM agents_memories WHERE id IN {part memory_ids};

-- name: delete_edges_of
DELETE FROM agents_edges WHERE source IN {part memory_ids} OR target IN {part memory_ids};

-- name: delete_halved_of
DELETE FROM agents_halved WHERE memory_id IN {part memory_ids};

-- name: add_edge
INSERT INTO agents_edges (source, target, edge_type, tenant_id, user_id, weight, created_at)
VALUES (:source, :target, :edge_type, :tenant_id, :user_id, :weight, :now)
ON CONFLICT (source, target, edge_type) DO UPDATE SET weight = excluded.weight;

-- name: remove_edge
DELETE FROM agents_edges
WHERE source = :source AND target = :target AND edge_type = :edge_type AND tenant_id = :tenant;

-- name: edges_of
SELECT source, target, edge_type, weight, created_at FROM agents_edges
WHERE (source IN {part memory_ids} OR target IN {part memory_ids})
    AND (CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant)
ORDER BY created_at DESC, source, target LIMIT :limit;

-- part: memory
SELECT m.id, m.tenant_id, m.workspace_id, m.user_id, m.memory_type, m.content, m.embedding_id,
    m.source_type, m.source_id, m.importance, m.access_count, m.last_accessed_at, m.is_shared,
    m.expires_at, m.valid_from, m.valid_to, m.metadata, m.created_at, m.updated_at
FROM agents_memories m

-- name: superseded_among
SELECT source, target FROM agents_edges
WHERE edge_type = 'supersedes' AND tenant_id = :tenant
    AND (source IN {part memory_ids} OR target IN {part memory_ids})
ORDER BY created_at, source;
