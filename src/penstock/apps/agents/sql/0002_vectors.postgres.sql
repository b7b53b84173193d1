-- Vectors as they were made: the truth, from which every index is built. A deleted one stays as a
-- row without a vector until the index has been compacted.
CREATE TABLE agents_vectors (
    namespace  TEXT NOT NULL,
    id         TEXT NOT NULL,
    tenant_id  TEXT NOT NULL,
    user_id    TEXT,
    model      TEXT NOT NULL,
    vector     BYTEA,
    metadata   TEXT NOT NULL,
    revision   BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (namespace, id)
);
CREATE INDEX agents_vectors_revision ON agents_vectors (namespace, revision);

-- One row for each namespace: which model its vectors are of, and how its index is.
CREATE TABLE agents_indexes (
    namespace    TEXT PRIMARY KEY,
    model        TEXT NOT NULL,
    dimensions   INTEGER NOT NULL,
    revision     BIGINT NOT NULL,
    built_at     BIGINT,
    recall       DOUBLE PRECISION,
    measured_at  BIGINT,
    generation   INTEGER NOT NULL
);
