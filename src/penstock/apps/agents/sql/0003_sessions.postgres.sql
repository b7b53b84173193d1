-- Sessions of an agent, their turns, and what is learned from them. Times are UTC milliseconds;
-- lists, figures and metadata are JSON. Of the turns of a session, `learned_turns` have been
-- made into trajectories.
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
    learned_turns  INTEGER,
    archive_id     TEXT,
    restored_at    BIGINT,
    metadata       TEXT NOT NULL
);
CREATE INDEX agents_sessions_status ON agents_sessions (status, last_active_at);
CREATE INDEX agents_sessions_unlearned ON agents_sessions (last_active_at, id)
    WHERE status IN ('closed', 'expired') AND (learned_turns IS NULL OR learned_turns <> turns);
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
    content        TEXT NOT NULL,
    started_at     BIGINT NOT NULL,
    ended_at       BIGINT NOT NULL,
    verdict        TEXT NOT NULL,
    verdict_reason TEXT NOT NULL,
    metrics        TEXT NOT NULL,
    embedding_id   TEXT,
    created_at     BIGINT NOT NULL
);
CREATE INDEX agents_trajectories_session ON agents_trajectories (session_id);
CREATE INDEX agents_trajectories_tenant ON agents_trajectories (tenant_id, ended_at);

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

-- Classifiers of trajectories: their parameters and how much each of them matters (Fisher). The
-- parent is the one whose parameters a training began with.
CREATE TABLE agents_classifiers (
    id         TEXT PRIMARY KEY,
    tenant_id  TEXT NOT NULL,
    parent_id  TEXT,
    model      TEXT NOT NULL,
    parameters BYTEA NOT NULL,
    fisher     BYTEA,
    figures    TEXT NOT NULL,
    is_active  INTEGER NOT NULL,
    job_id     TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX agents_classifiers_tenant ON agents_classifiers (tenant_id, is_active);

-- Files of archived sessions: Parquet, verified before the rows are gone. A file has its row
-- before it is written, as `writing`, so that none is ever there that nobody knows of.
CREATE TABLE agents_archives (
    id         TEXT PRIMARY KEY,
    tenant_id  TEXT NOT NULL,
    state      TEXT NOT NULL,
    job_id     TEXT NOT NULL,
    file       TEXT NOT NULL,
    sha256     TEXT NOT NULL,
    sessions   INTEGER NOT NULL,
    turns      INTEGER NOT NULL,
    bytes      BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX agents_archives_job ON agents_archives (job_id);
CREATE INDEX agents_archives_tenant ON agents_archives (tenant_id, created_at);
