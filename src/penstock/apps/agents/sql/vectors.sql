-- Vectors and their indexes. An index belongs to one namespace of one tenant and to one model.

-- name: index_state
SELECT model, dimensions, revision, generation FROM agents_indexes
WHERE namespace = :namespace AND tenant_id = :tenant_id;

-- name: take_revisions
-- The row stays locked until the commit: revisions are seen in the order in which they were taken.
INSERT INTO agents_indexes (namespace, tenant_id, model, dimensions, revision, generation)
VALUES (:namespace, :tenant_id, :model, :dimensions, :taken, 1)
ON CONFLICT (namespace, tenant_id) DO UPDATE SET revision = agents_indexes.revision + :taken
RETURNING revision, model, dimensions, generation;

-- name: count_revisions
-- The same where nothing is to be made.
UPDATE agents_indexes SET revision = revision + :taken
WHERE namespace = :namespace AND tenant_id = :tenant_id
RETURNING revision, model, dimensions, generation;

-- name: put_vector
-- A row that says the same already stays as it is, so that a job may do its work twice.
INSERT INTO agents_vectors (
    namespace, tenant_id, model, id, user_id, number, revision, vector, text, metadata, updated_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (namespace, tenant_id, model, id) DO UPDATE SET
    user_id = excluded.user_id, revision = excluded.revision, vector = excluded.vector,
    text = excluded.text, metadata = excluded.metadata, updated_at = excluded.updated_at
WHERE {part vector_differs};

-- part: vector_differs
agents_vectors.vector IS DISTINCT FROM excluded.vector
    OR agents_vectors.user_id IS DISTINCT FROM excluded.user_id
    OR agents_vectors.text IS DISTINCT FROM excluded.text
    OR agents_vectors.metadata <> excluded.metadata

-- name: bury_vector
UPDATE agents_vectors SET vector = NULL, text = NULL, metadata = '{}', revision = ?, updated_at = ?
WHERE namespace = ? AND tenant_id = ? AND id = ? AND vector IS NOT NULL;

-- name: vectors_after
-- What an index lacks that has seen a revision.
SELECT number, revision, updated_at, vector FROM agents_vectors
WHERE {part of_index} AND revision > :after
ORDER BY revision LIMIT :most;

-- part: of_index
namespace = :namespace AND tenant_id = :tenant_id AND model = :model

-- name: vectors_seen
SELECT number, revision, updated_at FROM agents_vectors
WHERE {part of_index} AND number IN {part numbers};

-- name: vectors_by_number
SELECT number, id, user_id, metadata, vector FROM agents_vectors
WHERE {part of_index} AND number IN {part numbers} AND vector IS NOT NULL;

-- name: ids_by_number
SELECT number, id FROM agents_vectors
WHERE {part of_index} AND number IN {part numbers} AND vector IS NOT NULL;

-- name: all_ids
SELECT number, id FROM agents_vectors WHERE {part of_index} AND vector IS NOT NULL;

-- name: vectors_by_id
SELECT id, vector FROM agents_vectors
WHERE {part of_index} AND id IN {part ids} AND vector IS NOT NULL;

-- name: vectors_page
SELECT number, id, user_id, metadata, vector FROM agents_vectors
WHERE {part of_index} AND number > :after AND vector IS NOT NULL
ORDER BY number LIMIT :most;

-- name: vectors_page_of_user
SELECT number, id, user_id, metadata, vector FROM agents_vectors
WHERE {part of_index} AND user_id = :user_id AND number > :after AND vector IS NOT NULL
ORDER BY number LIMIT :most;

-- name: vectors_page_of_nobody
SELECT number, id, user_id, metadata, vector FROM agents_vectors
WHERE {part of_index} AND user_id IS NULL AND number > :after AND vector IS NOT NULL
ORDER BY number LIMIT :most;

-- name: count_vectors
SELECT count(*) FROM agents_vectors WHERE {part of_index};

-- name: count_buried
SELECT count(*) FROM agents_vectors WHERE {part of_index} AND vector IS NULL;

-- name: all_indexes
SELECT namespace, tenant_id, model, dimensions, revision, generation, built_at, recall, measured_at
FROM agents_indexes
WHERE (CAST(:namespace AS TEXT) IS NULL OR namespace = :namespace)
  AND (CAST(:tenant_id AS TEXT) IS NULL OR tenant_id = :tenant_id)
ORDER BY namespace, tenant_id;

-- name: drop_buried
DELETE FROM agents_vectors WHERE {part of_index} AND vector IS NULL AND revision <= :revision;

-- name: begin_generation
UPDATE agents_indexes SET generation = generation + 1, built_at = :now
WHERE namespace = :namespace AND tenant_id = :tenant_id AND generation = :generation;

-- name: note_recall
UPDATE agents_indexes SET recall = :recall, measured_at = :now
WHERE namespace = :namespace AND tenant_id = :tenant_id;

-- name: texts_to_embed
-- Vectors of the model in use that the next one has not embedded yet.
SELECT id, revision, user_id, text, metadata FROM agents_vectors AS old
WHERE {part of_index} AND id > :after AND vector IS NOT NULL AND text IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM agents_vectors AS new
    WHERE new.namespace = old.namespace AND new.tenant_id = old.tenant_id
      AND new.model = :next AND new.id = old.id
)
ORDER BY id LIMIT :most;

-- name: count_without_text
SELECT count(*) FROM agents_vectors AS old
WHERE {part of_index} AND vector IS NOT NULL AND text IS NULL AND NOT EXISTS (
    SELECT 1 FROM agents_vectors AS new
    WHERE new.namespace = old.namespace AND new.tenant_id = old.tenant_id
      AND new.model = :next AND new.id = old.id
);

-- name: revisions_by_id
SELECT id, revision FROM agents_vectors
WHERE {part of_index} AND id IN {part ids} AND vector IS NOT NULL;

-- name: switch_model
UPDATE agents_indexes SET
    model = :next, dimensions = :dimensions, generation = generation + 1, built_at = :now,
    recall = NULL, measured_at = NULL
WHERE namespace = :namespace AND tenant_id = :tenant_id AND model = :model;

-- name: drop_other_models
DELETE FROM agents_vectors
WHERE namespace = :namespace AND tenant_id = :tenant_id AND model <> :model AND id IN (
    SELECT id FROM agents_vectors
    WHERE namespace = :namespace AND tenant_id = :tenant_id AND model <> :model LIMIT :most
);
