-- part: numbers
(SELECT CAST(value AS bigint) FROM json_array_elements_text(CAST(:numbers AS json)) AS value)

-- part: ids
(SELECT value FROM json_array_elements_text(CAST(:ids AS json)) AS value)

-- name: put_vector_columns
INSERT INTO agents_vectors (
    namespace, tenant_id, model, id, user_id, number, revision, vector, text, metadata, updated_at
)
SELECT * FROM unnest(
    CAST(? AS text[]), CAST(? AS text[]), CAST(? AS text[]), CAST(? AS text[]), CAST(? AS text[]),
    CAST(? AS bigint[]), CAST(? AS bigint[]), CAST(? AS bytea[]), CAST(? AS text[]),
    CAST(? AS text[]), CAST(? AS bigint[])
)
ON CONFLICT (namespace, tenant_id, model, id) DO UPDATE SET
    user_id = excluded.user_id, revision = excluded.revision, vector = excluded.vector,
    text = excluded.text, metadata = excluded.metadata, updated_at = excluded.updated_at
WHERE {part vector_differs};

-- name: has_pgvector
-- Whether step 0002 has found pgvector, and in which version.
SELECT extversion FROM pg_extension WHERE extname = 'vector' AND EXISTS (
    SELECT 1 FROM pg_attribute
    WHERE attrelid = to_regclass('agents_vectors') AND attname = 'embedding' AND NOT attisdropped
);

-- name: put_near_vector
-- With pgvector, whose index then knows the vector from the same commit on.
INSERT INTO agents_vectors (
    namespace, tenant_id, model, id, user_id, number, revision, vector, text, metadata, updated_at,
    embedding
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (namespace, tenant_id, model, id) DO UPDATE SET
    user_id = excluded.user_id, revision = excluded.revision, vector = excluded.vector,
    text = excluded.text, metadata = excluded.metadata, updated_at = excluded.updated_at,
    embedding = excluded.embedding
WHERE {part vector_differs};

-- name: bury_near_vector
UPDATE agents_vectors SET
    vector = NULL, text = NULL, metadata = '{}', revision = ?, updated_at = ?, embedding = NULL
WHERE namespace = ? AND tenant_id = ? AND id = ? AND vector IS NOT NULL;

-- name: unfilled
-- Rows that came from elsewhere, by a move or while pgvector was not there.
SELECT id, vector FROM agents_vectors
WHERE {part of_index} AND vector IS NOT NULL AND embedding IS NULL LIMIT :most;

-- name: fill
UPDATE agents_vectors SET embedding = ?
WHERE namespace = ? AND tenant_id = ? AND model = ? AND id = ? AND vector = ?;

-- name: near
SELECT number, score FROM agents_near(
    :namespace, :tenant_id, :model, CAST(:vector AS text), CAST(:dimensions AS integer),
    CAST(:most AS integer), CAST(:ef_search AS integer), CAST(:few AS integer)
);

-- name: index_near
SELECT agents_index_near(
    CAST(:dimensions AS integer), CAST(:m AS integer), CAST(:ef_construction AS integer),
    CAST(:anew AS boolean)
);
