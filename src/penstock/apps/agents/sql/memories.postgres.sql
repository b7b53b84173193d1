-- part: memory_ids
(SELECT json_array_elements_text(CAST(:ids AS json)))

-- name: memories_with_words
-- To rank a text it is taken apart again: of very many that match, some will do.
SELECT p.id FROM (
    SELECT m.id, m.content FROM agents_memories m
    WHERE to_tsvector('english', m.content) @@ to_tsquery('english', :words)
        AND m.tenant_id = :tenant
        AND (CAST(:user AS TEXT) IS NULL
            OR m.user_id = :user OR m.user_id IS NULL OR m.is_shared = 1)
    LIMIT 2000
) p
ORDER BY ts_rank(to_tsvector('english', p.content), to_tsquery('english', :words), 1) DESC, p.id
LIMIT :limit;

-- name: hold_memories
SELECT pg_advisory_xact_lock(hashtextextended('agents_memories/' || :whose, 0));
