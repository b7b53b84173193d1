-- Dependencies, order, schedules, pauses, limits and breakers. The tables that 0001 reserved were
-- never written.

-- A lane is (queue, tenant, type, limit key), so that a full limit is passed over in one step.
UPDATE jobs SET limit_key = '' WHERE limit_key IS NULL;
DROP INDEX jobs_queued;
CREATE INDEX jobs_queued ON jobs (queue, tenant_id, type, limit_key, rank, priority)
    WHERE status = 'queued';
CREATE INDEX jobs_blocked ON jobs (queue) WHERE status = 'pending' AND waiting_on > 0;
-- Jobs that have to join a line when they fall due.
CREATE INDEX jobs_due_ordered ON jobs (scheduled_at)
    WHERE order_key IS NOT NULL AND queued_at IS NULL AND status IN ('pending', 'failed') AND waiting_on = 0;
CREATE INDEX jobs_scheduled ON jobs (schedule_id, seq) WHERE schedule_id IS NOT NULL;

DROP TABLE job_dependencies;
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

DROP TABLE job_schedules;
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

DROP TABLE limits;
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

CREATE INDEX dead_letter_jobs_group ON dead_letter_jobs (fingerprint, type);
-- The group a job was replayed for, ahead of the others.
ALTER TABLE dead_letter_jobs ADD COLUMN canary_of TEXT;
CREATE INDEX dead_letter_jobs_canaries ON dead_letter_jobs (canary_of) WHERE canary_of IS NOT NULL;

ALTER TABLE workers ADD COLUMN max_priority INTEGER;
