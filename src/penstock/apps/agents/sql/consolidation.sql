-- name: sources
-- Episodic memories that held when the job was enqueued.
{part source}
WHERE m.tenant_id = :tenant AND m.memory_type = 'episodic' AND m.id > :after
    AND {part source_then}
ORDER BY m.id LIMIT :limit;

-- name: sources_among
{part source}
WHERE m.tenant_id = :tenant AND m.memory_type = 'episodic' AND m.id IN {part memory_ids}
    AND {part source_then}
ORDER BY m.id;

-- name: known_among
-- What else held.
{part source}
WHERE m.tenant_id = :tenant AND m.id IN {part memory_ids}
    AND (m.valid_to IS NULL OR m.superseded_at >= :as_of) AND m.created_at <= :as_of
    AND (m.expires_at IS NULL OR m.expires_at > :as_of)
ORDER BY m.id;

-- name: made_of
-- All sources of the memories that hold and were made of one of these.
SELECT e.target, e.source FROM agents_edges e
WHERE e.edge_type = 'part_of' AND e.target IN (
    SELECT p.target FROM agents_edges p JOIN agents_memories m ON m.id = p.target
    WHERE p.source IN {part memory_ids} AND p.edge_type = 'part_of' AND m.valid_to IS NULL
);

-- name: link_changed
-- The new one supersedes the old one, and what was made of it.
INSERT INTO agents_edges (source, target, edge_type, tenant_id, user_id, weight, created_at)
SELECT CAST(:new AS TEXT), m.id, 'supersedes', CAST(:tenant AS TEXT), CAST(:user AS TEXT),
    CAST(:weight AS DOUBLE PRECISION), CAST(:now AS BIGINT)
FROM agents_memories m
WHERE m.id = :old OR (m.valid_to IS NULL AND m.source_type = 'consolidation' AND m.id IN (
    SELECT e.target FROM agents_edges e WHERE e.source = :old AND e.edge_type = 'part_of'
))
ON CONFLICT (source, target, edge_type) DO NOTHING;

-- name: end_changed
UPDATE agents_memories SET valid_to = :valid_to, superseded_at = :now, updated_at = :now
WHERE valid_to IS NULL AND (id = :old OR (source_type = 'consolidation' AND id IN (
    SELECT e.target FROM agents_edges e WHERE e.source = :old AND e.edge_type = 'part_of'
)));

-- name: note_halved
INSERT INTO agents_halved (job_id, memory_id, tenant_id, user_id)
VALUES (:job, :memory, :tenant, :user)
ON CONFLICT (job_id, memory_id) DO NOTHING;

-- name: halve_memory
UPDATE agents_memories SET importance = importance * 0.5, updated_at = :now WHERE id = :memory;

-- part: source
SELECT m.id, m.user_id, m.workspace_id, m.memory_type, m.source_type, m.content, m.importance,
    m.is_shared, m.valid_from, m.valid_to, m.created_at
FROM agents_memories m

-- part: source_then
(CAST(:user AS TEXT) IS NULL OR m.user_id = :user)
    AND (CAST(:workspace AS TEXT) IS NULL OR m.workspace_id = :workspace)
    AND m.created_at <= :as_of
    AND (m.valid_to IS NULL OR m.superseded_at >= :as_of)
    AND (m.expires_at IS NULL OR m.expires_at > :as_of)
