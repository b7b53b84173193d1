-- Times are timestamptz with whole milliseconds; lease_until and leaders.until are by this server's
-- clock. Documents are json and not jsonb: they come back byte for byte, and hold what jsonb refuses.
-- Names compare by their bytes, as in every other store, whatever the locale of the database.

CREATE TABLE {schema}.penstock_meta (
    name  text COLLATE "C" PRIMARY KEY,
    value text NOT NULL
);

CREATE SEQUENCE {schema}.jobs_seq AS bigint;

-- Living and ended jobs lie apart: claims and their indexes stay small however long the history is.
CREATE TABLE {schema}.jobs (
    seq                 bigint NOT NULL DEFAULT nextval('{schema}.jobs_seq'),
    rank                bigint NOT NULL,
    fence               bigint NOT NULL DEFAULT 0,
    timeout_ms          bigint NOT NULL,
    retry_delay_ms      bigint,
    scheduled_at        timestamptz NOT NULL,
    created_at          timestamptz NOT NULL,
    updated_at          timestamptz NOT NULL,
    queued_at           timestamptz,
    started_at          timestamptz,
    completed_at        timestamptz,
    failed_at           timestamptz,
    expires_at          timestamptz,
    cancel_requested_at timestamptz,
    lease_until         timestamptz,
    backoff_multiplier  double precision,
    progress_percent    double precision,
    attempts            integer NOT NULL DEFAULT 0,
    max_retries         integer,
    snoozes             integer NOT NULL DEFAULT 0,
    rescues             integer NOT NULL DEFAULT 0,
    returns             integer NOT NULL DEFAULT 0,
    waiting_on          integer NOT NULL DEFAULT 0,
    priority            smallint NOT NULL CHECK (priority BETWEEN 1 AND 10),
    live                boolean NOT NULL DEFAULT true,
    status              text COLLATE "C" NOT NULL CHECK (status IN ('pending', 'queued', 'in_progress',
                            'failed', 'paused', 'completed', 'cancelled', 'dead_letter')),
    id                  text COLLATE "C" NOT NULL,
    type                text COLLATE "C" NOT NULL,
    queue               text COLLATE "C" NOT NULL,
    tenant_id           text COLLATE "C" NOT NULL DEFAULT '',
    limit_key           text COLLATE "C" NOT NULL DEFAULT '',
    lease_owner         text COLLATE "C",
    cancel_reason       text,
    progress_message    text,
    category            text COLLATE "C" NOT NULL DEFAULT 'general',
    workspace_id        text COLLATE "C",
    created_by          text COLLATE "C",
    parent_job_id       text COLLATE "C",
    schedule_id         text COLLATE "C",
    key                 text COLLATE "C",
    key_scope           text COLLATE "C",
    order_key           text COLLATE "C",
    tags                text[],
    error               text,
    metadata            json,
    trace_context       text,
    error_details       json,
    checkpoint          text,
    result              json,
    payload             json NOT NULL,
    CONSTRAINT jobs_live_while_not_ended
        CHECK (live = (status NOT IN ('completed', 'cancelled', 'dead_letter')))
) PARTITION BY LIST (live);

-- Room on every page, so that renewals, start marks and progress stay on it and touch no index.
CREATE TABLE {schema}.jobs_live PARTITION OF {schema}.jobs (PRIMARY KEY (id))
    FOR VALUES IN (true)
    WITH (fillfactor = 70,
        autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.05,
        autovacuum_vacuum_insert_scale_factor = 0.1,
        toast.autovacuum_vacuum_scale_factor = 0.01, toast.autovacuum_vacuum_threshold = 1000,
        toast.autovacuum_vacuum_cost_delay = 0);
CREATE TABLE {schema}.jobs_ended PARTITION OF {schema}.jobs (PRIMARY KEY (id))
    FOR VALUES IN (false)
    WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
        autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_scale_factor = 0.02);

-- Claims walk the lanes (queue, tenant, type, limit key) and take each in the order of its ranks.
CREATE INDEX jobs_live_queued
    ON {schema}.jobs_live (queue, tenant_id, type, limit_key, priority, rank, seq)
    WHERE status = 'queued';
CREATE INDEX jobs_live_due ON {schema}.jobs_live (scheduled_at)
    WHERE status IN ('pending', 'failed') AND waiting_on = 0;
CREATE INDEX jobs_live_leased ON {schema}.jobs_live (lease_owner) WHERE status = 'in_progress';
CREATE INDEX jobs_live_cancel_requested ON {schema}.jobs_live (lease_owner)
    WHERE status = 'in_progress' AND cancel_requested_at IS NOT NULL;
CREATE INDEX jobs_live_expiring ON {schema}.jobs_live (expires_at)
    WHERE expires_at IS NOT NULL AND status IN ('pending', 'queued', 'failed');
CREATE INDEX jobs_live_blocked ON {schema}.jobs_live (queue)
    WHERE status = 'pending' AND waiting_on > 0;
CREATE INDEX jobs_live_children ON {schema}.jobs_live (parent_job_id)
    WHERE parent_job_id IS NOT NULL;
CREATE INDEX jobs_live_scheduled ON {schema}.jobs_live (schedule_id, id)
    WHERE schedule_id IS NOT NULL;

CREATE INDEX jobs_ended_prunable ON {schema}.jobs_ended (status, completed_at);
CREATE INDEX jobs_ended_children ON {schema}.jobs_ended (parent_job_id)
    WHERE parent_job_id IS NOT NULL;
CREATE INDEX jobs_ended_scheduled ON {schema}.jobs_ended (schedule_id, id)
    WHERE schedule_id IS NOT NULL;

CREATE TABLE {schema}.job_executions (
    job_id      text COLLATE "C" NOT NULL,
    fence       bigint NOT NULL,
    started_at  timestamptz NOT NULL,
    ended_at    timestamptz NOT NULL,
    wait_ms     bigint,
    duration_ms bigint,
    cpu_ms      bigint,
    memory_kb   bigint,
    status      text COLLATE "C" NOT NULL,
    worker      text COLLATE "C",
    error_class text,
    error_code  text,
    error       text,
    error_stack text,
    result      json,
    PRIMARY KEY (job_id, fence)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 5000,
    autovacuum_vacuum_cost_delay = 0);

CREATE TABLE {schema}.job_keys (
    expires_at timestamptz,
    tenant_id  text COLLATE "C" NOT NULL,
    type       text COLLATE "C" NOT NULL,
    key        text COLLATE "C" NOT NULL,
    job_id     text COLLATE "C" NOT NULL,
    scope      text COLLATE "C" NOT NULL
        CHECK (scope IN ('while_pending', 'until_done', 'window', 'forever')),
    PRIMARY KEY (tenant_id, type, key)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0);
CREATE INDEX job_keys_job ON {schema}.job_keys (job_id);
CREATE INDEX job_keys_expiring ON {schema}.job_keys (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE {schema}.job_logs (
    seq     bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    fence   bigint NOT NULL,
    at      timestamptz NOT NULL,
    job_id  text COLLATE "C" NOT NULL,
    level   text NOT NULL,
    message text NOT NULL
);
CREATE INDEX job_logs_job ON {schema}.job_logs (job_id, seq);

CREATE TABLE {schema}.dead_letter_jobs (
    seq         bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    created_at  timestamptz NOT NULL,
    resolved_at timestamptz,
    attempts    integer NOT NULL,
    rescues     integer NOT NULL,
    job_id      text COLLATE "C" NOT NULL UNIQUE,
    type        text COLLATE "C" NOT NULL,
    queue       text COLLATE "C" NOT NULL,
    tenant_id   text COLLATE "C" NOT NULL,
    reason      text NOT NULL,
    error       text,
    error_code  text,
    fingerprint text COLLATE "C" NOT NULL,
    resolution  text COLLATE "C" NOT NULL DEFAULT 'pending'
        CHECK (resolution IN ('pending', 'investigating', 'resolved', 'ignored')),
    notes       text,
    resolved_by text,
    canary_of   text COLLATE "C",
    snapshot    json NOT NULL,
    executions  json NOT NULL
);
CREATE INDEX dead_letter_jobs_open ON {schema}.dead_letter_jobs (type)
    WHERE resolution = 'pending';
CREATE INDEX dead_letter_jobs_group ON {schema}.dead_letter_jobs (fingerprint, type, seq);
CREATE INDEX dead_letter_jobs_canaries ON {schema}.dead_letter_jobs (canary_of)
    WHERE canary_of IS NOT NULL;
