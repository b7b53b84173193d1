-- How far behind consumers are, what was done about it, and the figures that extensions keep.

-- Every check of the last while: how far behind each consumer was, and whether it counted.
CREATE TABLE events_readings (
    consumer TEXT NOT NULL,
    at       BIGINT NOT NULL,
    depth    BIGINT NOT NULL,
    lag_ms   BIGINT NOT NULL,
    -- 'runs', 'paused', 'resumes', 'sheds' or 'gone'.
    state    TEXT NOT NULL,
    PRIMARY KEY (consumer, at)
);
CREATE INDEX events_readings_at ON events_readings (at);

-- The levels there were, and why; the latest stands.
CREATE TABLE events_levels (
    at     BIGINT PRIMARY KEY,
    level  TEXT NOT NULL,
    reason TEXT NOT NULL
);

-- A row for each set of labels, span of time and, of a histogram, step. The id is made of all that
-- tells rows apart. What a consumer records belongs to a session, and goes with it.
CREATE TABLE events_series (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    labels     TEXT NOT NULL,
    tenant_id  TEXT NOT NULL,
    person     TEXT NOT NULL,
    consumer   TEXT NOT NULL,
    platform   TEXT NOT NULL,
    session_id TEXT NOT NULL,
    begins_at  BIGINT NOT NULL,
    step       INTEGER NOT NULL,
    count      BIGINT NOT NULL,
    total      DOUBLE PRECISION NOT NULL,
    updated_at BIGINT NOT NULL
);
CREATE INDEX events_series_name ON events_series (name, begins_at);
CREATE INDEX events_series_updated ON events_series (updated_at);
CREATE INDEX events_series_session ON events_series (session_id) WHERE session_id <> '';

-- The last values of a sliding window, one row each.
CREATE TABLE events_samples (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    labels     TEXT NOT NULL,
    tenant_id  TEXT NOT NULL,
    person     TEXT NOT NULL,
    consumer   TEXT NOT NULL,
    platform   TEXT NOT NULL,
    session_id TEXT NOT NULL,
    at         BIGINT NOT NULL,
    value      DOUBLE PRECISION NOT NULL
);
CREATE INDEX events_samples_name ON events_samples (name, labels, id);
CREATE INDEX events_samples_session ON events_samples (session_id) WHERE session_id <> '';
