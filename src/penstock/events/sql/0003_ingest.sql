-- What ingest does: the processes that read the stream, and the groups that the mirror left behind.

CREATE TABLE events_ingest (
    name          TEXT PRIMARY KEY,
    owner         TEXT NOT NULL,
    seen_at       BIGINT NOT NULL,
    -- The last commit of something that the stream held.
    progress_at   BIGINT NOT NULL,
    events        BIGINT NOT NULL,
    errors        BIGINT NOT NULL,
    -- Since when the store has refused every write; NULL if it takes them.
    failing_since BIGINT,
    -- Milliseconds of each stage of a batch: {"read": [p50, p95, p99], …}.
    stages        TEXT NOT NULL
);

-- Groups of cdc:events that were too slow for it: where in the log each has to go on.
CREATE TABLE events_groups (
    name         TEXT PRIMARY KEY,
    resume_after BIGINT NOT NULL,
    fallen_at    BIGINT NOT NULL
);
