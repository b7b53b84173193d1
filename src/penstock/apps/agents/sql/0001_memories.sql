-- What agents remember. Times are UTC milliseconds; metadata is JSON. A memory of something that
-- has changed is kept: it was valid from `valid_from` until `valid_to`.
CREATE TABLE agents_memories (
    id               TEXT PRIMARY KEY,
    tenant_id        TEXT NOT NULL,
    workspace_id     TEXT,
    user_id          TEXT,
    memory_type      TEXT NOT NULL,
    content          TEXT NOT NULL,
    content_hash     TEXT NOT NULL,
    embedding_id     TEXT,
    source_type      TEXT NOT NULL,
    source_id        TEXT,
    importance       DOUBLE PRECISION NOT NULL,
    access_count     INTEGER NOT NULL,
    last_accessed_at BIGINT,
    last_decayed_at  BIGINT NOT NULL,
    is_shared        INTEGER NOT NULL,
    expires_at       BIGINT,
    valid_from       BIGINT NOT NULL,
    valid_to         BIGINT,
    metadata         TEXT NOT NULL,
    created_at       BIGINT NOT NULL,
    updated_at       BIGINT NOT NULL
);
CREATE INDEX agents_memories_owner ON agents_memories (tenant_id, user_id, created_at);
CREATE INDEX agents_memories_hash ON agents_memories (tenant_id, content_hash);

-- How memories belong together: related_to, caused_by, part_of, supersedes.
CREATE TABLE agents_edges (
    source     TEXT NOT NULL,
    target     TEXT NOT NULL,
    edge_type  TEXT NOT NULL,
    tenant_id  TEXT NOT NULL,
    weight     DOUBLE PRECISION NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (source, target, edge_type)
);
CREATE INDEX agents_edges_target ON agents_edges (target);

-- Sources that a consolidation has made less important: each once, however often it runs.
CREATE TABLE agents_halved (
    job_id    TEXT NOT NULL,
    memory_id TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    PRIMARY KEY (job_id, memory_id)
);
