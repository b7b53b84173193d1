-- The log. Times are UTC milliseconds. A sequence is never given twice, and a later commit has a
-- greater one.

CREATE TABLE events_log (
    sequence                    INTEGER PRIMARY KEY AUTOINCREMENT,
    event_id                    TEXT NOT NULL,
    timestamp                   INTEGER NOT NULL,
    ingested_at                 INTEGER NOT NULL,
    event_type                  TEXT NOT NULL,
    session_id                  TEXT NOT NULL,
    platform                    TEXT NOT NULL,
    tenant_id                   TEXT NOT NULL,
    person                      TEXT,
    slot                        INTEGER NOT NULL,
    priority                    INTEGER NOT NULL,
    workspace_hash              TEXT,
    project_name                TEXT,
    uuid                        TEXT,
    parent_uuid                 TEXT,
    request_id                  TEXT,
    agent_id                    TEXT,
    is_sidechain                INTEGER,
    cwd                         TEXT,
    version                     TEXT,
    git_branch                  TEXT,
    message_role                TEXT,
    message_model               TEXT,
    message_id                  TEXT,
    input_tokens                INTEGER,
    output_tokens               INTEGER,
    cache_creation_input_tokens INTEGER,
    cache_read_input_tokens     INTEGER,
    duration_ms                 INTEGER,
    tokens_used                 INTEGER,
    tool_calls_count            INTEGER,
    codec                       TEXT NOT NULL,
    event_data                  BLOB NOT NULL,
    UNIQUE (event_id, timestamp, tenant_id)
) STRICT;
CREATE INDEX events_log_session ON events_log (session_id, sequence);
CREATE INDEX events_log_time ON events_log (timestamp);
-- An event that is nobody's is in neither of these.
CREATE INDEX events_log_tenant ON events_log (tenant_id, sequence) WHERE tenant_id <> '';
CREATE INDEX events_log_person ON events_log (person, sequence) WHERE person IS NOT NULL;
-- What is still to be compressed as well as it can be.
CREATE INDEX events_log_loose ON events_log (sequence) WHERE codec IN ('raw', 'zlib');

-- The columns by the names that tools for such traces know.
CREATE VIEW raw_traces AS
SELECT events_log.*, session_id AS external_id, date(timestamp / 1000, 'unixepoch') AS event_date,
    timestamp / 3600000 % 24 AS event_hour
FROM events_log;

-- What bodies were compressed with, so that a copy of the log can be read wherever it is.
CREATE TABLE events_dictionaries (
    id       INTEGER PRIMARY KEY,
    platform TEXT NOT NULL,
    data     BLOB NOT NULL
) STRICT;
