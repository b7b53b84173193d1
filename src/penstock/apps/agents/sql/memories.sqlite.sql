-- part: memory_ids
(SELECT value FROM json_each(:ids))

-- name: memories_with_words
SELECT m.id FROM agents_memory_words w JOIN agents_memories m ON m.n = w.rowid
WHERE w.agents_memory_words MATCH :words AND m.tenant_id = :tenant
    AND (:user IS NULL OR m.user_id = :user OR m.user_id IS NULL OR m.is_shared = 1)
ORDER BY bm25(agents_memory_words, 1.0, 0.0), m.id LIMIT :limit;

-- name: hold_memories
-- There is one writer at a time anyway.
SELECT :whose;
