-- The log. Times are UTC milliseconds. Sequences are given under a lock that is held until the
-- commit, so that a reader never passes one that commits late. A table of its own holds a month.

CREATE SEQUENCE events_log_sequence;

CREATE TABLE events_log (
    sequence                    bigint NOT NULL DEFAULT nextval('events_log_sequence'),
    event_id                    text COLLATE "C" NOT NULL,
    timestamp                   bigint NOT NULL,
    ingested_at                 bigint NOT NULL,
    event_type                  text COLLATE "C" NOT NULL,
    session_id                  text COLLATE "C" NOT NULL,
    platform                    text COLLATE "C" NOT NULL,
    tenant_id                   text COLLATE "C" NOT NULL,
    person                      text COLLATE "C",
    slot                        smallint NOT NULL,
    priority                    smallint NOT NULL,
    workspace_hash              text COLLATE "C",
    project_name                text COLLATE "C",
    uuid                        text COLLATE "C",
    parent_uuid                 text COLLATE "C",
    request_id                  text COLLATE "C",
    agent_id                    text COLLATE "C",
    is_sidechain                bigint,
    cwd                         text COLLATE "C",
    version                     text COLLATE "C",
    git_branch                  text COLLATE "C",
    message_role                text COLLATE "C",
    message_model               text COLLATE "C",
    message_id                  text COLLATE "C",
    input_tokens                bigint,
    output_tokens               bigint,
    cache_creation_input_tokens bigint,
    cache_read_input_tokens     bigint,
    duration_ms                 bigint,
    tokens_used                 bigint,
    tool_calls_count            bigint,
    codec                       text COLLATE "C" NOT NULL,
    event_data                  bytea NOT NULL,
    PRIMARY KEY (sequence, timestamp),
    UNIQUE (event_id, timestamp, tenant_id)
) PARTITION BY RANGE (timestamp);
ALTER SEQUENCE events_log_sequence OWNED BY events_log.sequence;
CREATE INDEX events_log_session ON events_log (session_id, sequence);
CREATE INDEX events_log_time ON events_log (timestamp);
-- An event that is nobody's is in neither of these.
CREATE INDEX events_log_tenant ON events_log (tenant_id, sequence) WHERE tenant_id <> '';
CREATE INDEX events_log_person ON events_log (person, sequence) WHERE person IS NOT NULL;
-- What is still to be compressed as well as it can be.
CREATE INDEX events_log_loose ON events_log (sequence) WHERE codec IN ('raw', 'zlib');
CREATE TABLE events_log_other PARTITION OF events_log DEFAULT;

-- The columns by the names that tools for such traces know; who reads it sees his own rows alone.
CREATE VIEW raw_traces WITH (security_invoker = true) AS
SELECT events_log.*, session_id AS external_id,
    (to_timestamp(timestamp / 1000.0) AT TIME ZONE 'UTC')::date AS event_date,
    timestamp / 3600000 % 24 AS event_hour
FROM events_log;

-- What bodies were compressed with, so that a copy of the log can be read wherever it is.
CREATE TABLE events_dictionaries (
    id       bigint PRIMARY KEY,
    platform text COLLATE "C" NOT NULL,
    data     bytea NOT NULL
);
