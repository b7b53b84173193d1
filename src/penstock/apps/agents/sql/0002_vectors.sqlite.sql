-- Vectors as they were made: the truth, from which every index is built. `number` is what an index
-- calls a vector; it stays while the id does. A deleted one stays as a row without a vector until
-- its index is compacted. `revision` counts the writes of one namespace of one tenant: an index
-- that has seen revision 7 lacks the rows above it, and no others.
CREATE TABLE agents_vectors (
    namespace  TEXT NOT NULL,
    tenant_id  TEXT NOT NULL,
    model      TEXT NOT NULL,
    id         TEXT NOT NULL,
    user_id    TEXT,
    number     BIGINT NOT NULL,
    revision   BIGINT NOT NULL,
    vector     BLOB,
    text       TEXT,
    metadata   TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (namespace, tenant_id, model, id)
);
CREATE UNIQUE INDEX agents_vectors_number
    ON agents_vectors (namespace, tenant_id, model, number);
CREATE UNIQUE INDEX agents_vectors_revision
    ON agents_vectors (namespace, tenant_id, model, revision);
CREATE INDEX agents_vectors_user
    ON agents_vectors (namespace, tenant_id, model, user_id, number);
CREATE INDEX agents_vectors_buried
    ON agents_vectors (namespace, tenant_id, model) WHERE vector IS NULL;

-- One row for each namespace of each tenant: which model its vectors are sought by, and how its
-- index is. Whoever writes vectors counts `revision` up first, and so waits for others who do.
CREATE TABLE agents_indexes (
    namespace   TEXT NOT NULL,
    tenant_id   TEXT NOT NULL,
    model       TEXT NOT NULL,
    dimensions  INTEGER NOT NULL,
    revision    BIGINT NOT NULL,
    generation  INTEGER NOT NULL,
    built_at    BIGINT,
    recall      DOUBLE PRECISION,
    measured_at BIGINT,
    PRIMARY KEY (namespace, tenant_id)
);
