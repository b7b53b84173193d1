-- Dependencies, order, schedules, what holds work back, who does it, and how much was done.

CREATE TABLE {schema}.job_dependencies (
    created_at timestamptz NOT NULL,
    closed_at  timestamptz,
    position   integer,
    child_id   text COLLATE "C" NOT NULL,
    parent_id  text COLLATE "C" NOT NULL,
    kind       text COLLATE "C" NOT NULL,
    argument   text COLLATE "C" NOT NULL DEFAULT '',
    condition  text,
    on_failure text COLLATE "C" NOT NULL,
    on_requeue text COLLATE "C" NOT NULL,
    outcome    text COLLATE "C" CHECK (outcome IN ('satisfied', 'cancelled', 'dead', 'not_met')),
    result     json,
    PRIMARY KEY (child_id, parent_id, kind, argument)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0);
-- With the child, so that one edge of a parent that has thousands is found by either index.
CREATE INDEX job_dependencies_open ON {schema}.job_dependencies (parent_id, child_id)
    WHERE outcome IS NULL;
CREATE INDEX job_dependencies_parent ON {schema}.job_dependencies (parent_id, child_id);

-- The last job in line for each order key that has one.
CREATE TABLE {schema}.order_lines (
    tenant_id text COLLATE "C" NOT NULL,
    order_key text COLLATE "C" NOT NULL,
    last_id   text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, order_key)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_cost_delay = 0);
CREATE INDEX order_lines_last ON {schema}.order_lines (last_id);

CREATE TABLE {schema}.job_schedules (
    interval_ms      bigint,
    starts_at        timestamptz,
    ends_at          timestamptz,
    expires_at       timestamptz,
    last_run_at      timestamptz,
    next_run_at      timestamptz,
    created_at       timestamptz NOT NULL,
    updated_at       timestamptz NOT NULL,
    max_runs         bigint,
    run_count        bigint NOT NULL DEFAULT 0,
    revision         bigint NOT NULL DEFAULT 0,
    enabled          boolean NOT NULL,
    by_operator      boolean NOT NULL DEFAULT false,
    id               text COLLATE "C" PRIMARY KEY,
    name             text COLLATE "C" NOT NULL,
    type             text COLLATE "C" NOT NULL,
    kind             text COLLATE "C" NOT NULL CHECK (kind IN ('cron', 'interval', 'once')),
    tenant_id        text COLLATE "C" NOT NULL DEFAULT '',
    expression       text,
    zone             text NOT NULL,
    misfire          text COLLATE "C" NOT NULL CHECK (misfire IN ('skip', 'one', 'all')),
    created_by       text,
    payload_template json NOT NULL,
    options          json NOT NULL,
    metadata         json,
    UNIQUE (tenant_id, name)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_cost_delay = 0);
CREATE INDEX job_schedules_due ON {schema}.job_schedules (next_run_at)
    WHERE enabled AND next_run_at IS NOT NULL;
CREATE INDEX job_schedules_expiring ON {schema}.job_schedules (expires_at)
    WHERE expires_at IS NOT NULL;

CREATE TABLE {schema}.pauses (
    created_at timestamptz NOT NULL,
    scope      text COLLATE "C" NOT NULL CHECK (scope IN ('job', 'queue', 'type', 'tenant')),
    name       text COLLATE "C" NOT NULL,
    reason     text,
    paused_by  text,
    PRIMARY KEY (scope, name)
);

CREATE TABLE {schema}.limits (
    capacity    bigint NOT NULL CHECK (capacity > 0),
    interval_ms bigint,
    updated_at  timestamptz NOT NULL,
    by_operator boolean NOT NULL DEFAULT false,
    scope       text COLLATE "C" NOT NULL CHECK (scope IN ('type', 'key', 'tenant', 'queue')),
    name        text COLLATE "C" NOT NULL,
    kind        text COLLATE "C" NOT NULL CHECK (kind IN ('concurrency', 'rate', 'depth')),
    PRIMARY KEY (scope, name, kind)
);

-- How many jobs under a concurrency limit each owner may run at once. Only as many count as it
-- has leases: a slot dies with its lease, whatever is written here.
CREATE TABLE {schema}.slots (
    slots bigint NOT NULL,
    scope text COLLATE "C" NOT NULL,
    name  text COLLATE "C" NOT NULL,
    owner text COLLATE "C" NOT NULL,
    PRIMARY KEY (scope, name, owner)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_cost_delay = 0);

CREATE TABLE {schema}.rate_starts (
    scope  text COLLATE "C" NOT NULL,
    name   text COLLATE "C" NOT NULL,
    starts jsonb NOT NULL,
    PRIMARY KEY (scope, name)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_cost_delay = 0);

CREATE TABLE {schema}.breakers (
    cool_down_ms bigint NOT NULL,
    opened_at    timestamptz,
    updated_at   timestamptz NOT NULL,
    failures     integer NOT NULL,
    failed       integer NOT NULL DEFAULT 0,
    name         text COLLATE "C" PRIMARY KEY,
    types        text[] NOT NULL,
    probe_id     text COLLATE "C"
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_cost_delay = 0);

CREATE TABLE {schema}.workers (
    started_at   timestamptz NOT NULL,
    heartbeat_at timestamptz NOT NULL,
    completed    bigint NOT NULL,
    failed       bigint NOT NULL,
    poll_age_ms  bigint NOT NULL,
    cpu_percent  double precision NOT NULL,
    memory_mb    double precision NOT NULL,
    pid          integer NOT NULL,
    concurrency  integer NOT NULL,
    running      integer NOT NULL,
    max_priority smallint,
    owner        text COLLATE "C" PRIMARY KEY,
    name         text COLLATE "C" NOT NULL,
    node         text COLLATE "C" NOT NULL,
    state        text COLLATE "C" NOT NULL,
    queues       text[],
    types        text[] NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_cost_delay = 0);

CREATE TABLE {schema}.leaders (
    until timestamptz NOT NULL,
    role  text COLLATE "C" PRIMARY KEY,
    owner text COLLATE "C" NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_cost_delay = 0);

CREATE TABLE {schema}.metrics (
    resolution_ms bigint NOT NULL,
    bucket        bigint NOT NULL,
    value         double precision NOT NULL,
    type          text COLLATE "C" NOT NULL,
    queue         text COLLATE "C" NOT NULL,
    name          text COLLATE "C" NOT NULL,
    PRIMARY KEY (resolution_ms, bucket, type, queue, name)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0);

-- Only appended to, so that two settles never meet on the row of one counter; a roll-up folds
-- them into metrics.
CREATE TABLE {schema}.metric_deltas (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    bucket bigint NOT NULL,
    sums   jsonb NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0);

CREATE TABLE {schema}.audit_log (
    seq      bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    at       timestamptz NOT NULL,
    actor    text NOT NULL,
    action   text NOT NULL,
    subject  text NOT NULL,
    details  json,
    previous text,
    hash     text NOT NULL
);

-- The names the Global Context Network knows this queue by. It shows a tenant its own rows only.
CREATE VIEW {schema}.job_queue WITH (security_invoker = true) AS
SELECT id, type, status, priority, scheduled_at, lease_owner, lease_until, payload,
    key AS idempotency_key, attempts, max_retries, error, created_at, updated_at, started_at,
    completed_at, result
FROM {schema}.jobs;
