-- What agents remember. Times are UTC milliseconds; metadata is JSON. A memory of something that
-- has changed is kept: it was valid from `valid_from` until `valid_to`, which somebody found out at
-- `superseded_at`.
CREATE TABLE agents_memories (
    -- Numbers a row for the index of its words; the id is what it is known by.
    n                INTEGER PRIMARY KEY,
    id               TEXT NOT NULL UNIQUE,
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
    superseded_at    BIGINT,
    metadata         TEXT NOT NULL,
    created_at       BIGINT NOT NULL,
    updated_at       BIGINT NOT NULL
);
CREATE INDEX agents_memories_owner ON agents_memories (tenant_id, user_id, created_at, id);
CREATE INDEX agents_memories_hash ON agents_memories (tenant_id, content_hash);
CREATE INDEX agents_memories_expiry ON agents_memories (expires_at) WHERE expires_at IS NOT NULL;

-- The words of memories, and whose they are, so that a search looks at no others. What is deleted
-- leaves the index at once, not only when it is merged.
CREATE VIRTUAL TABLE agents_memory_words USING fts5(
    content, tenant_id, content = 'agents_memories', content_rowid = 'n',
    tokenize = 'porter unicode61 remove_diacritics 2'
);
INSERT INTO agents_memory_words (agents_memory_words, rank) VALUES ('secure-delete', 1);
CREATE TRIGGER agents_memory_words_added AFTER INSERT ON agents_memories BEGIN
    INSERT INTO agents_memory_words (rowid, content, tenant_id)
    VALUES (new.n, new.content, new.tenant_id);
END;
CREATE TRIGGER agents_memory_words_changed
AFTER UPDATE OF n, content, tenant_id ON agents_memories BEGIN
    INSERT INTO agents_memory_words (agents_memory_words, rowid, content, tenant_id)
    VALUES ('delete', old.n, old.content, old.tenant_id);
    INSERT INTO agents_memory_words (rowid, content, tenant_id)
    VALUES (new.n, new.content, new.tenant_id);
END;
CREATE TRIGGER agents_memory_words_removed AFTER DELETE ON agents_memories BEGIN
    INSERT INTO agents_memory_words (agents_memory_words, rowid, content, tenant_id)
    VALUES ('delete', old.n, old.content, old.tenant_id);
END;

-- How memories belong together: related_to, caused_by, part_of, supersedes.
CREATE TABLE agents_edges (
    source     TEXT NOT NULL,
    target     TEXT NOT NULL,
    edge_type  TEXT NOT NULL,
    tenant_id  TEXT NOT NULL,
    user_id    TEXT,
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
    user_id   TEXT,
    PRIMARY KEY (job_id, memory_id)
);
CREATE INDEX agents_halved_memory ON agents_halved (memory_id);
