-- Times are UTC milliseconds, except lease_until and leaders.until, which count on the host's
-- monotonic clock so that moving the wall clock never expires a lease.

CREATE TABLE jobs (
    seq                 INTEGER PRIMARY KEY,
    id                  TEXT NOT NULL UNIQUE,
    type                TEXT NOT NULL,
    queue               TEXT NOT NULL,
    tenant_id           TEXT NOT NULL DEFAULT '',
    -- Of a list of more than two SQLite would make a table, for every row it writes.
    status              TEXT NOT NULL CHECK (status = 'completed' OR status = 'in_progress'
                            OR status = 'queued' OR status = 'pending' OR status = 'failed'
                            OR status = 'paused' OR status = 'cancelled' OR status = 'dead_letter'),
    rank                INTEGER NOT NULL,
    fence               INTEGER NOT NULL DEFAULT 0,
    priority            INTEGER NOT NULL CHECK (priority BETWEEN 1 AND 10),
    attempts            INTEGER NOT NULL DEFAULT 0,
    max_retries         INTEGER,
    snoozes             INTEGER NOT NULL DEFAULT 0,
    rescues             INTEGER NOT NULL DEFAULT 0,
    returns             INTEGER NOT NULL DEFAULT 0,
    timeout_ms          INTEGER NOT NULL,
    scheduled_at        INTEGER NOT NULL,
    waiting_on          INTEGER NOT NULL DEFAULT 0,
    lease_owner         TEXT,
    lease_until         INTEGER,
    created_at          INTEGER NOT NULL,
    updated_at          INTEGER NOT NULL,
    queued_at           INTEGER,
    started_at          INTEGER,
    completed_at        INTEGER,
    failed_at           INTEGER,
    expires_at          INTEGER,
    cancel_requested_at INTEGER,
    cancel_reason       TEXT,
    retry_delay_ms      INTEGER,
    backoff_multiplier  REAL,
    progress_percent    REAL,
    progress_message    TEXT,
    progress            TEXT,
    category            TEXT NOT NULL DEFAULT 'general',
    workspace_id        TEXT,
    created_by          TEXT,
    parent_job_id       TEXT,
    schedule_id         TEXT,
    key                 TEXT,
    key_scope           TEXT,
    limit_key           TEXT,
    order_key           TEXT,
    keep_completed      INTEGER,
    keep_failed         INTEGER,
    tags                TEXT,
    metadata            TEXT,
    trace_context       TEXT,
    error               TEXT,
    error_details       TEXT,
    checkpoint          TEXT,
    result              TEXT,
    payload             TEXT NOT NULL
) STRICT;

-- Every claim and every settlement asks each condition whether the job belongs into the index. What
-- few jobs have, and a number rather than a text, stands first: most are done with it at once.

-- Claims walk the lanes (queue, tenant, type, limit key) and take each in rank order: a full limit is
-- passed over in one step.
CREATE INDEX jobs_queued ON jobs (queue, tenant_id, type, limit_key, rank, priority)
    WHERE status = 'queued';
CREATE INDEX jobs_due ON jobs (scheduled_at) WHERE status IN ('pending', 'failed') AND waiting_on = 0;
CREATE INDEX jobs_leased ON jobs (lease_owner) WHERE status = 'in_progress';
CREATE INDEX jobs_cancel_requested ON jobs (lease_owner)
    WHERE cancel_requested_at IS NOT NULL AND status = 'in_progress';
CREATE INDEX jobs_expiring ON jobs (expires_at)
    WHERE expires_at IS NOT NULL AND status IN ('pending', 'queued', 'failed');
CREATE INDEX jobs_ended ON jobs (status, completed_at)
    WHERE (status = 'completed' OR status = 'cancelled' OR status = 'dead_letter');
-- Of jobs that say themselves when they are removed: by the time of that, or by their number.
CREATE INDEX jobs_removed_complete ON jobs (completed_at + keep_completed)
    WHERE keep_completed >= 0 AND status = 'completed';
CREATE INDEX jobs_removed_dead ON jobs (completed_at + keep_failed)
    WHERE keep_failed >= 0 AND status = 'dead_letter';
CREATE INDEX jobs_counted_complete ON jobs (type, completed_at)
    WHERE keep_completed < 0 AND status = 'completed';
CREATE INDEX jobs_counted_dead ON jobs (type, completed_at)
    WHERE keep_failed < 0 AND status = 'dead_letter';
CREATE INDEX jobs_blocked ON jobs (queue) WHERE waiting_on > 0 AND status = 'pending';
-- Jobs that have to join a line when they fall due.
CREATE INDEX jobs_due_ordered ON jobs (scheduled_at)
    WHERE order_key IS NOT NULL AND queued_at IS NULL AND status IN ('pending', 'failed') AND waiting_on = 0;
CREATE INDEX jobs_scheduled ON jobs (schedule_id, seq) WHERE schedule_id IS NOT NULL;
CREATE INDEX jobs_children ON jobs (parent_job_id) WHERE parent_job_id IS NOT NULL;

CREATE TABLE job_executions (
    job_id      TEXT NOT NULL,
    fence       INTEGER NOT NULL,
    status      TEXT NOT NULL,
    started_at  INTEGER NOT NULL,
    ended_at    INTEGER NOT NULL,
    wait_ms     INTEGER,
    duration_ms INTEGER,
    cpu_ms      INTEGER,
    memory_kb   INTEGER,
    worker      TEXT,
    error_class TEXT,
    error_code  TEXT,
    error       TEXT,
    error_stack TEXT,
    result      TEXT,
    PRIMARY KEY (job_id, fence)
) STRICT, WITHOUT ROWID;

CREATE TABLE job_keys (
    tenant_id  TEXT NOT NULL,
    type       TEXT NOT NULL,
    key        TEXT NOT NULL,
    job_id     TEXT NOT NULL,
    scope      TEXT NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (tenant_id, type, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_keys_job ON job_keys (job_id);
CREATE INDEX job_keys_expiring ON job_keys (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE job_dependencies (
    child_id   TEXT NOT NULL,
    parent_id  TEXT NOT NULL,
    kind       TEXT NOT NULL,
    argument   TEXT NOT NULL DEFAULT '',
    position   INTEGER,
    condition  TEXT,
    on_failure TEXT NOT NULL,
    on_requeue TEXT NOT NULL,
    outcome    TEXT CHECK (outcome IN ('satisfied', 'cancelled', 'dead', 'not_met')),
    result     TEXT,
    created_at INTEGER NOT NULL,
    closed_at  INTEGER,
    PRIMARY KEY (child_id, parent_id, kind, argument)
) STRICT, WITHOUT ROWID;
CREATE INDEX job_dependencies_open ON job_dependencies (parent_id) WHERE outcome IS NULL;
CREATE INDEX job_dependencies_parent ON job_dependencies (parent_id);

-- The last job in line for each order key that has one.
CREATE TABLE order_lines (
    tenant_id TEXT NOT NULL,
    order_key TEXT NOT NULL,
    last_id   TEXT NOT NULL,
    PRIMARY KEY (tenant_id, order_key)
) STRICT, WITHOUT ROWID;
CREATE INDEX order_lines_last ON order_lines (last_id);

CREATE TABLE job_schedules (
    id               TEXT PRIMARY KEY,
    name             TEXT NOT NULL,
    type             TEXT NOT NULL,
    kind             TEXT NOT NULL CHECK (kind IN ('cron', 'interval', 'once')),
    tenant_id        TEXT NOT NULL DEFAULT '',
    payload_template TEXT NOT NULL,
    options          TEXT NOT NULL,
    expression       TEXT,
    interval_ms      INTEGER,
    zone             TEXT NOT NULL,
    misfire          TEXT NOT NULL CHECK (misfire IN ('skip', 'one', 'all')),
    enabled          INTEGER NOT NULL,
    starts_at        INTEGER,
    ends_at          INTEGER,
    expires_at       INTEGER,
    max_runs         INTEGER,
    run_count        INTEGER NOT NULL DEFAULT 0,
    last_run_at      INTEGER,
    next_run_at      INTEGER,
    by_operator      INTEGER NOT NULL DEFAULT 0,
    created_by       TEXT,
    metadata         TEXT,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    revision         INTEGER NOT NULL DEFAULT 0,
    UNIQUE (tenant_id, name)
) STRICT;
CREATE INDEX job_schedules_due ON job_schedules (next_run_at)
    WHERE enabled = 1 AND next_run_at IS NOT NULL;
CREATE INDEX job_schedules_expiring ON job_schedules (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE job_logs (
    seq     INTEGER PRIMARY KEY,
    job_id  TEXT NOT NULL,
    fence   INTEGER NOT NULL,
    at      INTEGER NOT NULL,
    level   TEXT NOT NULL,
    message TEXT NOT NULL
) STRICT;
CREATE INDEX job_logs_job ON job_logs (job_id, seq);

CREATE TABLE dead_letter_jobs (
    seq         INTEGER PRIMARY KEY,
    job_id      TEXT NOT NULL UNIQUE,
    type        TEXT NOT NULL,
    queue       TEXT NOT NULL,
    tenant_id   TEXT NOT NULL,
    reason      TEXT NOT NULL,
    error       TEXT,
    error_code  TEXT,
    fingerprint TEXT NOT NULL,
    attempts    INTEGER NOT NULL,
    rescues     INTEGER NOT NULL,
    snapshot    TEXT NOT NULL,
    executions  TEXT NOT NULL,
    resolution  TEXT NOT NULL DEFAULT 'pending'
                CHECK (resolution IN ('pending', 'investigating', 'resolved', 'ignored')),
    notes       TEXT,
    resolved_by TEXT,
    resolved_at INTEGER,
    created_at  INTEGER NOT NULL,
    -- The group the job was replayed for, ahead of the others.
    canary_of   TEXT
) STRICT;
CREATE INDEX dead_letter_jobs_canaries ON dead_letter_jobs (canary_of) WHERE canary_of IS NOT NULL;
-- A dead letter is open until it is resolved or ignored. In the order of seq, so that the newest is
-- found without a look at those that are closed; with the resolution, so that they are counted
-- without a look at any.
CREATE INDEX dead_letter_jobs_open ON dead_letter_jobs (seq, resolution)
    WHERE resolution IN ('pending', 'investigating');
CREATE INDEX dead_letter_jobs_open_type ON dead_letter_jobs (type, seq, resolution)
    WHERE resolution IN ('pending', 'investigating');
-- What is pruned of those that are closed.
CREATE INDEX dead_letter_jobs_closed ON dead_letter_jobs (resolved_at)
    WHERE resolution IN ('resolved', 'ignored');
-- All that a group of alike letters is counted from.
CREATE INDEX dead_letter_jobs_group
    ON dead_letter_jobs (fingerprint, type, seq, resolution, created_at, tenant_id);

CREATE TABLE pauses (
    scope      TEXT NOT NULL,
    name       TEXT NOT NULL,
    reason     TEXT,
    paused_by  TEXT,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (scope, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE limits (
    scope       TEXT NOT NULL CHECK (scope IN ('type', 'key', 'tenant', 'queue')),
    name        TEXT NOT NULL,
    kind        TEXT NOT NULL CHECK (kind IN ('concurrency', 'rate', 'depth')),
    capacity    INTEGER NOT NULL CHECK (capacity > 0),
    interval_ms INTEGER,
    by_operator INTEGER NOT NULL DEFAULT 0,
    updated_at  INTEGER NOT NULL,
    PRIMARY KEY (scope, name, kind)
) STRICT, WITHOUT ROWID;

-- How many jobs under a concurrency limit each owner may run at once. Only as many count as it
-- has leases: a slot dies with its lease, whatever is written here.
CREATE TABLE slots (
    scope TEXT NOT NULL,
    name  TEXT NOT NULL,
    owner TEXT NOT NULL,
    slots INTEGER NOT NULL,
    PRIMARY KEY (scope, name, owner)
) STRICT, WITHOUT ROWID;

-- The latest starts under each rate, as JSON: [[milliseconds, count], ...].
CREATE TABLE rate_starts (
    scope  TEXT NOT NULL,
    name   TEXT NOT NULL,
    starts TEXT NOT NULL,
    PRIMARY KEY (scope, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE breakers (
    name         TEXT PRIMARY KEY,
    types        TEXT NOT NULL,
    failures     INTEGER NOT NULL,
    cool_down_ms INTEGER NOT NULL,
    failed       INTEGER NOT NULL DEFAULT 0,
    opened_at    INTEGER,
    probe_id     TEXT,
    updated_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE workers (
    owner        TEXT PRIMARY KEY,
    name         TEXT NOT NULL,
    node         TEXT NOT NULL,
    pid          INTEGER NOT NULL,
    queues       TEXT,
    types        TEXT NOT NULL,
    concurrency  INTEGER NOT NULL,
    running      INTEGER NOT NULL,
    completed    INTEGER NOT NULL,
    failed       INTEGER NOT NULL,
    cpu_percent  REAL NOT NULL,
    memory_mb    REAL NOT NULL,
    poll_age_ms  INTEGER NOT NULL,
    state        TEXT NOT NULL,
    started_at   INTEGER NOT NULL,
    heartbeat_at INTEGER NOT NULL,
    max_priority INTEGER,
    declared_queues TEXT NOT NULL DEFAULT '[]'
) STRICT, WITHOUT ROWID;

CREATE TABLE leaders (
    role  TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    until INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE metrics (
    resolution_ms INTEGER NOT NULL,
    bucket        INTEGER NOT NULL,
    type          TEXT NOT NULL,
    queue         TEXT NOT NULL,
    name          TEXT NOT NULL,
    value         REAL NOT NULL,
    PRIMARY KEY (resolution_ms, bucket, type, queue, name)
) STRICT, WITHOUT ROWID;

-- Who is told what becomes of jobs. With the first one come the triggers on jobs that record it.
CREATE TABLE followers (
    name     TEXT PRIMARY KEY,
    statuses TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- One row for each follower and change, until it confirms it. A number is never given again: it
-- would confirm a change that nobody was told.
CREATE TABLE job_changes (
    seq       INTEGER PRIMARY KEY AUTOINCREMENT,
    follower  TEXT NOT NULL,
    job_id    TEXT NOT NULL,
    type      TEXT NOT NULL,
    queue     TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    status    TEXT NOT NULL,
    fence     INTEGER NOT NULL,
    at        INTEGER NOT NULL
) STRICT;
CREATE INDEX job_changes_follower ON job_changes (follower);

-- Small documents: tokens, users, sessions, alerts.
CREATE TABLE records (
    kind       TEXT NOT NULL,
    name       TEXT NOT NULL,
    document   TEXT NOT NULL,
    revision   INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX records_expiring ON records (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE audit_log (
    seq       INTEGER PRIMARY KEY,
    at        INTEGER NOT NULL,
    actor     TEXT NOT NULL,
    action    TEXT NOT NULL,
    subject   TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    details   TEXT NOT NULL,
    previous  TEXT NOT NULL,
    hash      TEXT NOT NULL
) STRICT;
-- What one person did, what was done to one thing and what concerns one tenant, newest first, without
-- a look at the rest of the log.
CREATE INDEX audit_log_actor ON audit_log (actor, seq);
CREATE INDEX audit_log_subject ON audit_log (subject, seq);
CREATE INDEX audit_log_tenant ON audit_log (tenant_id, seq);

-- The names the Global Context Network knows this queue by.
CREATE VIEW job_queue AS
SELECT
    id, type, status, priority,
    strftime('%Y-%m-%dT%H:%M:%fZ', scheduled_at / 1000.0, 'unixepoch') AS scheduled_at,
    lease_owner,
    strftime('%Y-%m-%dT%H:%M:%fZ', (lease_until + (SELECT value FROM penstock_meta
        WHERE name = 'wall_minus_monotonic')) / 1000.0, 'unixepoch') AS lease_until,
    payload, key AS idempotency_key, attempts, max_retries, error,
    strftime('%Y-%m-%dT%H:%M:%fZ', created_at / 1000.0, 'unixepoch') AS created_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', updated_at / 1000.0, 'unixepoch') AS updated_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', started_at / 1000.0, 'unixepoch') AS started_at,
    strftime('%Y-%m-%dT%H:%M:%fZ', completed_at / 1000.0, 'unixepoch') AS completed_at,
    result
FROM jobs;
