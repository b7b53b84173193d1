-- What consumers make of events: conversations with their turns, tools and changes, figures and
-- insights. All of it can be thrown away and made anew. Times are UTC milliseconds; numbers `n`
-- count within a conversation, from 1.

CREATE TABLE recorder_conversations (
    id             TEXT PRIMARY KEY,
    tenant_id      TEXT NOT NULL,
    person         TEXT,
    platform       TEXT NOT NULL,
    session_id     TEXT NOT NULL,
    title          TEXT NOT NULL,
    workspace_hash TEXT,
    project        TEXT,
    branch         TEXT,
    model          TEXT,
    started_at     BIGINT NOT NULL,
    last_at        BIGINT NOT NULL,
    ended_at       BIGINT,
    turns          INTEGER NOT NULL,
    tools          INTEGER NOT NULL,
    failures       INTEGER NOT NULL,
    interruptions  INTEGER NOT NULL,
    changes        INTEGER NOT NULL,
    input_tokens   BIGINT NOT NULL,
    output_tokens  BIGINT NOT NULL,
    cache_write    BIGINT NOT NULL,
    cache_read     BIGINT NOT NULL,
    metadata       TEXT NOT NULL
);
CREATE UNIQUE INDEX recorder_conversations_session
    ON recorder_conversations (session_id, platform, tenant_id);
CREATE INDEX recorder_conversations_last ON recorder_conversations (last_at, id);
CREATE INDEX recorder_conversations_tenant ON recorder_conversations (tenant_id, last_at, id);

-- What is still open in a conversation, as the next event has to know it: one row a consumer.
CREATE TABLE recorder_states (
    conversation_id TEXT NOT NULL,
    consumer        TEXT NOT NULL,
    tenant_id       TEXT NOT NULL,
    state           TEXT NOT NULL,
    PRIMARY KEY (conversation_id, consumer)
);

CREATE TABLE recorder_turns (
    conversation_id TEXT NOT NULL,
    n               INTEGER NOT NULL,
    tenant_id       TEXT NOT NULL,
    status          TEXT NOT NULL,
    started_at      BIGINT NOT NULL,
    ended_at        BIGINT,
    prompt          TEXT,
    answer          TEXT,
    model           TEXT,
    input_tokens    BIGINT NOT NULL,
    output_tokens   BIGINT NOT NULL,
    cache_write     BIGINT NOT NULL,
    -- Those of cache_write that are kept for an hour, which cost more.
    cache_write_1h  BIGINT NOT NULL,
    cache_read      BIGINT NOT NULL,
    response_ms     BIGINT,
    agent_id        TEXT,
    branch          INTEGER NOT NULL,
    PRIMARY KEY (conversation_id, n)
);

CREATE TABLE recorder_tools (
    conversation_id TEXT NOT NULL,
    n               INTEGER NOT NULL,
    tenant_id       TEXT NOT NULL,
    turn            INTEGER NOT NULL,
    tool_use_id     TEXT NOT NULL,
    name            TEXT NOT NULL,
    summary         TEXT NOT NULL,
    status          TEXT NOT NULL,
    started_at      BIGINT NOT NULL,
    duration_ms     BIGINT,
    error           TEXT,
    agent_id        TEXT,
    PRIMARY KEY (conversation_id, n)
);
CREATE INDEX recorder_tools_use ON recorder_tools (conversation_id, tool_use_id);

CREATE TABLE recorder_changes (
    conversation_id TEXT NOT NULL,
    n               INTEGER NOT NULL,
    tenant_id       TEXT NOT NULL,
    turn            INTEGER NOT NULL,
    tool            INTEGER,
    file_path       TEXT NOT NULL,
    kind            TEXT NOT NULL,
    added           INTEGER NOT NULL,
    removed         INTEGER NOT NULL,
    at              BIGINT NOT NULL,
    decision        TEXT,
    PRIMARY KEY (conversation_id, n)
);

-- What happened beside turns: begin and end, compaction, another model, a notification.
CREATE TABLE recorder_entries (
    conversation_id TEXT NOT NULL,
    n               INTEGER NOT NULL,
    tenant_id       TEXT NOT NULL,
    turn            INTEGER NOT NULL,
    kind            TEXT NOT NULL,
    at              BIGINT NOT NULL,
    text            TEXT NOT NULL,
    PRIMARY KEY (conversation_id, n)
);

CREATE TABLE recorder_commits (
    conversation_id TEXT NOT NULL,
    hash            TEXT NOT NULL,
    tenant_id       TEXT NOT NULL,
    branch          TEXT NOT NULL,
    at              BIGINT NOT NULL,
    files           TEXT NOT NULL,
    subject         TEXT NOT NULL,
    PRIMARY KEY (conversation_id, hash)
);
CREATE INDEX recorder_commits_hash ON recorder_commits (hash);

-- Tokens by model, and by the subagent that spent them; an empty agent is the session itself.
CREATE TABLE recorder_spent (
    conversation_id TEXT NOT NULL,
    model           TEXT NOT NULL,
    agent_id        TEXT NOT NULL,
    tenant_id       TEXT NOT NULL,
    input_tokens    BIGINT NOT NULL,
    output_tokens   BIGINT NOT NULL,
    cache_write     BIGINT NOT NULL,
    cache_write_1h  BIGINT NOT NULL,
    cache_read      BIGINT NOT NULL,
    PRIMARY KEY (conversation_id, model, agent_id)
);

-- Figures of a session, by the consumer `metrics`. Counts of tools are JSON.
CREATE TABLE recorder_metrics (
    conversation_id TEXT PRIMARY KEY,
    tenant_id       TEXT NOT NULL,
    last_at         BIGINT NOT NULL,
    decisions       INTEGER NOT NULL,
    accepted        INTEGER NOT NULL,
    direct          INTEGER NOT NULL,
    rejected        INTEGER NOT NULL,
    partial         INTEGER NOT NULL,
    iterations      INTEGER NOT NULL,
    changes         INTEGER NOT NULL,
    interruptions   INTEGER NOT NULL,
    acceptance_rate DOUBLE PRECISION,
    diversity       DOUBLE PRECISION NOT NULL,
    productivity    DOUBLE PRECISION NOT NULL,
    gaps            TEXT NOT NULL,
    tools           TEXT NOT NULL
);
CREATE INDEX recorder_metrics_last ON recorder_metrics (last_at);

CREATE TABLE recorder_insights (
    conversation_id TEXT NOT NULL,
    kind            TEXT NOT NULL,
    n               INTEGER NOT NULL,
    tenant_id       TEXT NOT NULL,
    title           TEXT NOT NULL,
    text            TEXT NOT NULL,
    source          TEXT NOT NULL,
    at              BIGINT NOT NULL,
    PRIMARY KEY (conversation_id, kind, n)
);

-- How far files of assistants were read: a hash of where one is, which file it is, and the time of
-- the last record.
CREATE TABLE recorder_positions (
    id         TEXT PRIMARY KEY,
    kind       TEXT NOT NULL,
    position   BIGINT NOT NULL,
    mark       TEXT NOT NULL,
    at         BIGINT NOT NULL,
    updated_at BIGINT NOT NULL
);

-- The names under which other tools of this kind know them.
CREATE VIEW conversations AS
SELECT c.id, c.session_id, c.session_id AS external_id, c.platform, c.workspace_hash,
    c.project AS workspace_name, c.started_at, c.ended_at, c.title AS context, c.metadata,
    (SELECT string_agg(t.name, ' ' ORDER BY t.n) FROM recorder_tools t
     WHERE t.conversation_id = c.id) AS tool_sequence,
    (SELECT string_agg(d.decision, ' ' ORDER BY d.n) FROM recorder_changes d
     WHERE d.conversation_id = c.id) AS acceptance_decisions,
    c.turns + c.tools AS interaction_count, m.acceptance_rate,
    c.input_tokens + c.output_tokens + c.cache_write + c.cache_read AS total_tokens,
    c.changes AS total_changes, 1 AS sanitized,
    (SELECT max(r.validated) FROM recorder_messages r WHERE r.conversation_id = c.id)
        AS sanitization_version,
    (SELECT count(*) FROM recorder_messages r WHERE r.conversation_id = c.id) AS message_count
FROM recorder_conversations c LEFT JOIN recorder_metrics m ON m.conversation_id = c.id;
CREATE VIEW conversation_turns AS SELECT * FROM recorder_turns;
CREATE VIEW code_changes AS SELECT * FROM recorder_changes;
