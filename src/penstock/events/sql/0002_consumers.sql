-- How far consumers have come, who works on what, and what they could not do.

-- A row for every slot: whoever holds it moves it, in the commit of what the events had it do.
CREATE TABLE events_cursors (
    consumer    TEXT NOT NULL,
    slot        INTEGER NOT NULL,
    position    BIGINT NOT NULL,
    epoch       BIGINT NOT NULL,
    owner       TEXT,
    lease_until BIGINT NOT NULL,
    -- Grows with every change of its sessions' marks; who has looked at them then looks again.
    marks       BIGINT NOT NULL,
    PRIMARY KEY (consumer, slot)
);

-- What runs consumers: a process, and how many workers it has for each.
CREATE TABLE events_members (
    consumer TEXT NOT NULL,
    member   TEXT NOT NULL,
    workers  INTEGER NOT NULL,
    seen_at  BIGINT NOT NULL,
    PRIMARY KEY (consumer, member)
);

-- What every consumer is, as it was declared, and does now; whoever watches the pressure changes it.
CREATE TABLE events_consumers (
    name           TEXT PRIMARY KEY,
    role           TEXT NOT NULL,
    created_at     BIGINT NOT NULL,
    -- The types it sees, each between blanks; NULL if it sees all.
    types          TEXT,
    partitions     INTEGER NOT NULL,
    starts         INTEGER NOT NULL,
    minimum        INTEGER NOT NULL,
    maximum        INTEGER NOT NULL,
    own_batch      INTEGER NOT NULL,
    own_timeout_ms INTEGER NOT NULL,
    -- How many workers its depth asks for, whatever the level adds or takes.
    sized          INTEGER NOT NULL,
    -- By an operator, or because of the pressure; 0 if it is not.
    paused         INTEGER NOT NULL,
    held           INTEGER NOT NULL,
    -- When workers of it were last seen.
    run_at         BIGINT NOT NULL,
    -- 1 if it was paused or held and works off what has gathered since.
    resumes        INTEGER NOT NULL,
    workers        INTEGER NOT NULL,
    batch          INTEGER NOT NULL,
    timeout_ms     INTEGER NOT NULL,
    enriches       INTEGER NOT NULL,
    -- Events of this priority and above are put off: their sessions are behind.
    sheds_from     INTEGER
);

-- Sessions that are not as the log says: an event of theirs was parked, or was put off.
CREATE TABLE events_marks (
    consumer   TEXT NOT NULL,
    tenant_id  TEXT NOT NULL,
    platform   TEXT NOT NULL,
    session_id TEXT NOT NULL,
    slot       INTEGER NOT NULL,
    mark       TEXT NOT NULL,
    reason     TEXT NOT NULL,
    since      BIGINT NOT NULL,
    marked_at  BIGINT NOT NULL,
    PRIMARY KEY (consumer, tenant_id, platform, session_id)
);
CREATE INDEX events_marks_slot ON events_marks (consumer, slot);

-- Events that were given up: by ingest, of which there may be no more than a hash and a size, or by
-- a consumer.
CREATE TABLE events_dead (
    id         TEXT PRIMARY KEY,
    source     TEXT NOT NULL,
    sequence   BIGINT,
    event_id   TEXT NOT NULL,
    event_type TEXT NOT NULL,
    platform   TEXT NOT NULL,
    session_id TEXT NOT NULL,
    tenant_id  TEXT NOT NULL,
    person     TEXT,
    reason     TEXT NOT NULL,
    tries      INTEGER NOT NULL,
    size       BIGINT NOT NULL,
    sha256     TEXT NOT NULL,
    failed_at  BIGINT NOT NULL,
    document   TEXT,
    -- Whether telemetry:dlq has it.
    mirrored   INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX events_dead_source ON events_dead (source, id);
CREATE INDEX events_dead_unmirrored ON events_dead (id) WHERE mirrored = 0;

-- The jobs that consumers enqueued, by the event they came of: a replay does not enqueue them again.
-- Those whose event was erased are `erasing` until they are gone, too.
CREATE TABLE events_jobs (
    consumer TEXT NOT NULL,
    sequence BIGINT NOT NULL,
    n        INTEGER NOT NULL,
    jobs     TEXT NOT NULL,
    erasing  INTEGER NOT NULL,
    PRIMARY KEY (consumer, sequence, n)
);
CREATE INDEX events_jobs_sequence ON events_jobs (sequence);
CREATE INDEX events_jobs_erasing ON events_jobs (erasing) WHERE erasing = 1;
