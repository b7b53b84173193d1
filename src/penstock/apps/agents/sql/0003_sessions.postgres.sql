-- Sessions of an agent, their turns, and what is learned from them. Times are UTC milliseconds;
-- lists, figures and metadata are JSON.
CREATE TABLE agents_sessions (
    id             TEXT PRIMARY KEY,
    tenant_id      TEXT NOT NULL,
    workspace_id   TEXT,
    user_id        TEXT,
    started_at     BIGINT NOT NULL,
    last_active_at BIGINT NOT NULL,
    expires_at     BIGINT,
    status         TEXT NOT NULL,
    turns          INTEGER NOT NULL,
    archive_id     TEXT,
    metadata       TEXT NOT NULL
);
CREATE INDEX agents_sessions_status ON agents_sessions (status, last_active_at);
CREATE INDEX agents_sessions_owner ON agents_sessions (tenant_id, user_id, started_at);

CREATE TABLE agents_turns (
    session_id TEXT NOT NULL,
    n          INTEGER NOT NULL,
    tenant_id  TEXT NOT NULL,
    user_id    TEXT,
    role       TEXT NOT NULL,
    content    TEXT NOT NULL,
    skill_id   TEXT,
    succeeded  INTEGER,
    at         BIGINT NOT NULL,
    metadata   TEXT NOT NULL,
    PRIMARY KEY (session_id, n)
);

CREATE TABLE agents_trajectories (
    id             TEXT PRIMARY KEY,
    tenant_id      TEXT NOT NULL,
    workspace_id   TEXT,
    user_id        TEXT,
    session_id     TEXT NOT NULL,
    turn_ids       TEXT NOT NULL,
    skill_ids      TEXT NOT NULL,
    started_at     BIGINT NOT NULL,
    ended_at       BIGINT NOT NULL,
    verdict        TEXT NOT NULL,
    verdict_reason TEXT NOT NULL,
    metrics        TEXT NOT NULL,
    embedding_id   TEXT,
    created_at     BIGINT NOT NULL
);
CREATE INDEX agents_trajectories_session ON agents_trajectories (session_id);
CREATE INDEX agents_trajectories_tenant ON agents_trajectories (tenant_id, created_at);

CREATE TABLE agents_patterns (
    id                      TEXT PRIMARY KEY,
    tenant_id               TEXT NOT NULL,
    pattern_type            TEXT NOT NULL,
    content                 TEXT NOT NULL,
    embedding_id            TEXT,
    exemplar_trajectory_ids TEXT NOT NULL,
    confidence              DOUBLE PRECISION NOT NULL,
    usage_count             INTEGER NOT NULL,
    success_count           INTEGER NOT NULL,
    is_active               INTEGER NOT NULL,
    superseded_by           TEXT,
    metadata                TEXT NOT NULL,
    created_at              BIGINT NOT NULL,
    updated_at              BIGINT NOT NULL
);
CREATE INDEX agents_patterns_tenant ON agents_patterns (tenant_id, is_active, created_at);

-- Classifiers of trajectories: their parameters and how much each of them matters (Fisher).
CREATE TABLE agents_classifiers (
    id         TEXT PRIMARY KEY,
    tenant_id  TEXT NOT NULL,
    model      TEXT NOT NULL,
    parameters BYTEA NOT NULL,
    fisher     BYTEA,
    figures    TEXT NOT NULL,
    is_active  INTEGER NOT NULL,
    job_id     TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX agents_classifiers_tenant ON agents_classifiers (tenant_id, is_active);

-- Files of archived sessions: Parquet, verified before the rows are gone.
CREATE TABLE agents_archives (
    id         TEXT PRIMARY KEY,
    tenant_id  TEXT NOT NULL,
    file       TEXT NOT NULL,
    sha256     TEXT NOT NULL,
    sessions   INTEGER NOT NULL,
    turns      INTEGER NOT NULL,
    bytes      BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
