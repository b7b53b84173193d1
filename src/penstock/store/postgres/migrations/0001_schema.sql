-- Times are timestamptz with whole milliseconds; lease_until and leaders.until are by this server's
-- clock. Documents are json and not jsonb: they come back byte for byte, and hold what jsonb refuses.
-- Names compare by their bytes, as in every other store, whatever the locale of the database.

CREATE TABLE {schema}.penstock_meta (
    name  text COLLATE "C" PRIMARY KEY,
    value text NOT NULL
);
COMMENT ON TABLE {schema}.penstock_meta IS 'What penstock knows about this schema, its version above all.';
COMMENT ON COLUMN {schema}.penstock_meta.name IS 'The name of the fact.';
COMMENT ON COLUMN {schema}.penstock_meta.value IS 'The fact.';

CREATE SEQUENCE {schema}.jobs_seq AS bigint;

-- Living and ended jobs lie apart: claims and their indexes stay small however long the history is.
CREATE TABLE {schema}.jobs (
    seq                 bigint NOT NULL DEFAULT nextval('{schema}.jobs_seq'),
    rank                bigint NOT NULL,
    fence               bigint NOT NULL DEFAULT 0,
    timeout_ms          bigint NOT NULL,
    retry_delay_ms      bigint,
    keep_completed      bigint,
    keep_failed         bigint,
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
    progress            json,
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
-- In the order they are listed in, so that a page of many children costs no more than one of few.
CREATE INDEX jobs_live_children ON {schema}.jobs_live (parent_job_id, id)
    WHERE parent_job_id IS NOT NULL;
CREATE INDEX jobs_live_scheduled ON {schema}.jobs_live (schedule_id, id)
    WHERE schedule_id IS NOT NULL;

CREATE INDEX jobs_ended_prunable ON {schema}.jobs_ended (status, completed_at);
-- Of jobs that say themselves when they are removed: by the time of that, or by their number.
CREATE INDEX jobs_ended_removed_complete ON {schema}.jobs_ended
    (((date_part('epoch', completed_at AT TIME ZONE 'UTC') * 1000)::bigint + keep_completed))
    WHERE status = 'completed' AND keep_completed >= 0;
CREATE INDEX jobs_ended_removed_dead ON {schema}.jobs_ended
    (((date_part('epoch', completed_at AT TIME ZONE 'UTC') * 1000)::bigint + keep_failed))
    WHERE status = 'dead_letter' AND keep_failed >= 0;
CREATE INDEX jobs_ended_counted_complete ON {schema}.jobs_ended (type, completed_at)
    WHERE status = 'completed' AND keep_completed < 0;
CREATE INDEX jobs_ended_counted_dead ON {schema}.jobs_ended (type, completed_at)
    WHERE status = 'dead_letter' AND keep_failed < 0;
CREATE INDEX jobs_ended_children ON {schema}.jobs_ended (parent_job_id, id)
    WHERE parent_job_id IS NOT NULL;
CREATE INDEX jobs_ended_scheduled ON {schema}.jobs_ended (schedule_id, id)
    WHERE schedule_id IS NOT NULL;

COMMENT ON TABLE {schema}.jobs IS 'All jobs: the living ones in jobs_live, the ended ones in jobs_ended.';
COMMENT ON COLUMN {schema}.jobs.seq IS 'Grows with every job made; of one rank, the lower one goes first.';
COMMENT ON COLUMN {schema}.jobs.rank
    IS 'The order within a lane: when the job fell due, plus an hour per step of priority.';
COMMENT ON COLUMN {schema}.jobs.fence IS 'Grows with every lease granted or taken away, and is never reset.';
COMMENT ON COLUMN {schema}.jobs.timeout_ms IS 'How long one execution may take.';
COMMENT ON COLUMN {schema}.jobs.retry_delay_ms
    IS 'The first delay before a retry, where the job has its own.';
COMMENT ON COLUMN {schema}.jobs.keep_completed
    IS 'For how many milliseconds it is kept once it is complete; below 0, how many of its type are.';
COMMENT ON COLUMN {schema}.jobs.keep_failed IS 'The same once it is a dead letter.';
COMMENT ON COLUMN {schema}.jobs.scheduled_at IS 'When the job falls due.';
COMMENT ON COLUMN {schema}.jobs.created_at IS 'When the job was enqueued.';
COMMENT ON COLUMN {schema}.jobs.updated_at IS 'When the row last changed, renewals of the lease aside.';
COMMENT ON COLUMN {schema}.jobs.queued_at IS 'When the job was last queued, or took its place in line.';
COMMENT ON COLUMN {schema}.jobs.started_at
    IS 'When the current or last execution started; empty while it is only leased.';
COMMENT ON COLUMN {schema}.jobs.completed_at IS 'When the job ended, however it ended.';
COMMENT ON COLUMN {schema}.jobs.failed_at IS 'When an execution last failed.';
COMMENT ON COLUMN {schema}.jobs.expires_at IS 'When a job that has not started is given up.';
COMMENT ON COLUMN {schema}.jobs.cancel_requested_at IS 'When somebody asked the running job to stop.';
COMMENT ON COLUMN {schema}.jobs.lease_until
    IS 'When the lease runs out by this server''s clock, unless it is renewed.';
COMMENT ON COLUMN {schema}.jobs.backoff_multiplier IS 'How fast the delays grow, where the job has its own.';
COMMENT ON COLUMN {schema}.jobs.progress_percent IS 'How far the handler says it is.';
COMMENT ON COLUMN {schema}.jobs.attempts IS 'Executions that spent the retry budget.';
COMMENT ON COLUMN {schema}.jobs.max_retries IS 'The retry budget; null leaves it to the class of the error.';
COMMENT ON COLUMN {schema}.jobs.snoozes IS 'Executions that asked for more time and spent no attempt.';
COMMENT ON COLUMN {schema}.jobs.rescues IS 'How often the job''s process died under it.';
COMMENT ON COLUMN {schema}.jobs.returns IS 'How often a lease came back without an execution that counted.';
COMMENT ON COLUMN {schema}.jobs.waiting_on IS 'How many open edges the job waits for.';
COMMENT ON COLUMN {schema}.jobs.priority IS '1 is most urgent, 10 least.';
COMMENT ON COLUMN {schema}.jobs.live IS 'Whether the job has not ended; it decides the partition.';
COMMENT ON COLUMN {schema}.jobs.status IS 'The state of the job.';
COMMENT ON COLUMN {schema}.jobs.id IS 'The job''s id, a ULID made by whoever enqueued it.';
COMMENT ON COLUMN {schema}.jobs.type IS 'The registered name of what is to be done.';
COMMENT ON COLUMN {schema}.jobs.queue IS 'The named lane the job waits in.';
COMMENT ON COLUMN {schema}.jobs.tenant_id IS 'Whom the job belongs to; empty where there are no tenants.';
COMMENT ON COLUMN {schema}.jobs.limit_key IS 'The name of the limit the job counts under; empty for none.';
COMMENT ON COLUMN {schema}.jobs.lease_owner IS 'The process that holds the lease.';
COMMENT ON COLUMN {schema}.jobs.cancel_reason IS 'Why somebody asked the running job to stop.';
COMMENT ON COLUMN {schema}.jobs.progress_message IS 'What the handler says it is doing.';
COMMENT ON COLUMN {schema}.jobs.progress IS 'The object in which the handler says both, if it does.';
COMMENT ON COLUMN {schema}.jobs.category IS 'A word for grouping job types.';
COMMENT ON COLUMN {schema}.jobs.workspace_id IS 'The part of the tenant the job belongs to.';
COMMENT ON COLUMN {schema}.jobs.created_by IS 'Who enqueued the job.';
COMMENT ON COLUMN {schema}.jobs.parent_job_id IS 'The job whose handler enqueued this one.';
COMMENT ON COLUMN {schema}.jobs.schedule_id IS 'The schedule that enqueued this one.';
COMMENT ON COLUMN {schema}.jobs.key IS 'The unique key the job was enqueued with.';
COMMENT ON COLUMN {schema}.jobs.key_scope IS 'How long the unique key keeps others out.';
COMMENT ON COLUMN {schema}.jobs.order_key IS 'Jobs of one tenant with the same order key run one at a time.';
COMMENT ON COLUMN {schema}.jobs.tags IS 'Words to find the job by.';
COMMENT ON COLUMN {schema}.jobs.error IS 'What went wrong last, redacted.';
COMMENT ON COLUMN {schema}.jobs.metadata IS 'What the caller wants to remember with the job.';
COMMENT ON COLUMN {schema}.jobs.trace_context IS 'The W3C trace the job belongs to.';
COMMENT ON COLUMN {schema}.jobs.error_details IS 'Class, code and stack of what went wrong last, redacted.';
COMMENT ON COLUMN {schema}.jobs.checkpoint IS 'What the handler kept for its next execution.';
COMMENT ON COLUMN {schema}.jobs.result IS 'What the handler returned.';
COMMENT ON COLUMN {schema}.jobs.payload IS 'The arguments, byte for byte as they were enqueued.';
COMMENT ON TABLE {schema}.jobs_live IS 'Jobs that wait or run: small, busy, and all that a claim looks at.';
COMMENT ON TABLE {schema}.jobs_ended IS 'Jobs that have ended, until they are pruned.';
COMMENT ON SEQUENCE {schema}.jobs_seq IS 'The order in which jobs were made.';

DO $$
DECLARE
    part regclass;
    found record;
BEGIN
    FOREACH part IN ARRAY ARRAY['{schema}.jobs_live'::regclass, '{schema}.jobs_ended'] LOOP
        FOR found IN
            SELECT attname, col_description(attrelid, attnum) AS about FROM pg_attribute
            WHERE attrelid = '{schema}.jobs'::regclass AND attnum > 0 AND NOT attisdropped
        LOOP
            EXECUTE format('COMMENT ON COLUMN %s.%I IS %L', part, found.attname, found.about);
        END LOOP;
    END LOOP;
END
$$;

-- jsonb refuses what json holds: a NUL, half a surrogate pair, a number of thousands of digits, a
-- document nested thousands deep. An index over it must not keep such a job from being enqueued.
-- Not in plain SQL, which could not be made part of a query here and takes twice as long. It stands
-- here and not among the functions because the index below is made of it: it changes with that.
CREATE FUNCTION {schema}.searchable(document json) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    written CONSTANT text := document::text;
BEGIN
    RETURN CASE
        WHEN strpos(written, '\u') > 0 AND regexp_replace(
                -- Without escaped backslashes and whole pairs, what is left of a pair is a half.
                replace(written, '\\', '__'),
                '\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}', '_', 'g'
            ) ~ '\\u(0000|[dD][89a-fA-F])' THEN NULL
        WHEN written ~ '(^|[[:space:]:,[])-?[0-9.]+[eE][+-]?[0-9]{5}' THEN NULL
        WHEN octet_length(written) > 8000 AND (written ~ '[0-9]{250}'
            OR length(written) - length(translate(written, '[{', '')) > 4000) THEN NULL
        ELSE written::jsonb
    END;
END
$$;
COMMENT ON FUNCTION {schema}.searchable
    IS 'A document as jsonb, for searching in it; nothing for one that jsonb cannot hold.';

-- Over ended jobs only: over living ones it would double the cost of an enqueue and of a claim.
CREATE INDEX jobs_ended_payload ON {schema}.jobs_ended
    USING gin ({schema}.searchable(payload) jsonb_path_ops);

-- A lane is all jobs that a claim takes from one end, and how far it is known to be empty.
CREATE TYPE {schema}.lane AS (
    queue text COLLATE "C", tenant_id text COLLATE "C", type text COLLATE "C",
    limit_key text COLLATE "C", priority smallint, from_rank bigint);

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
COMMENT ON TABLE {schema}.job_executions IS 'One row for each execution that has ended.';
COMMENT ON COLUMN {schema}.job_executions.job_id IS 'The job that was executed.';
COMMENT ON COLUMN {schema}.job_executions.fence IS 'The lease it ran under.';
COMMENT ON COLUMN {schema}.job_executions.started_at IS 'When it started.';
COMMENT ON COLUMN {schema}.job_executions.ended_at IS 'When it ended.';
COMMENT ON COLUMN {schema}.job_executions.wait_ms IS 'How long the job had waited in the queue.';
COMMENT ON COLUMN {schema}.job_executions.duration_ms IS 'How long it took.';
COMMENT ON COLUMN {schema}.job_executions.cpu_ms IS 'How much processor time it took.';
COMMENT ON COLUMN {schema}.job_executions.memory_kb IS 'The peak memory of its process.';
COMMENT ON COLUMN {schema}.job_executions.status IS 'How it ended.';
COMMENT ON COLUMN {schema}.job_executions.worker IS 'The process that ran it.';
COMMENT ON COLUMN {schema}.job_executions.error_class IS 'What kind of error ended it.';
COMMENT ON COLUMN {schema}.job_executions.error_code IS 'The name of the exception.';
COMMENT ON COLUMN {schema}.job_executions.error IS 'The message of the error, redacted.';
COMMENT ON COLUMN {schema}.job_executions.error_stack IS 'The innermost frames of the error, redacted.';
COMMENT ON COLUMN {schema}.job_executions.result IS 'What the handler returned.';

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
COMMENT ON TABLE {schema}.job_keys IS 'Unique keys that are taken.';
COMMENT ON COLUMN {schema}.job_keys.expires_at IS 'When a key with a window is free again.';
COMMENT ON COLUMN {schema}.job_keys.tenant_id IS 'The tenant within which it is unique.';
COMMENT ON COLUMN {schema}.job_keys.type IS 'The job type within which it is unique.';
COMMENT ON COLUMN {schema}.job_keys.key IS 'The key.';
COMMENT ON COLUMN {schema}.job_keys.job_id IS 'The job that holds it.';
COMMENT ON COLUMN {schema}.job_keys.scope
    IS 'How long it is held: until the first claim, until the end, for a window, or for ever.';

CREATE TABLE {schema}.job_logs (
    seq     bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    fence   bigint NOT NULL,
    at      timestamptz NOT NULL,
    job_id  text COLLATE "C" NOT NULL,
    level   text NOT NULL,
    message text NOT NULL
);
CREATE INDEX job_logs_job ON {schema}.job_logs (job_id, seq);
COMMENT ON TABLE {schema}.job_logs IS 'Lines that handlers wrote about their jobs.';
COMMENT ON COLUMN {schema}.job_logs.seq IS 'The order of the lines.';
COMMENT ON COLUMN {schema}.job_logs.fence IS 'The lease the line was written under.';
COMMENT ON COLUMN {schema}.job_logs.at IS 'When it was written.';
COMMENT ON COLUMN {schema}.job_logs.job_id IS 'The job it is about.';
COMMENT ON COLUMN {schema}.job_logs.level IS 'How grave it is.';
COMMENT ON COLUMN {schema}.job_logs.message IS 'The line, redacted.';

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
CREATE INDEX dead_letter_jobs_canaries ON {schema}.dead_letter_jobs (canary_of)
    WHERE canary_of IS NOT NULL;
-- A dead letter is open until it is resolved or ignored. In the order of seq, so that the newest is
-- found without a look at those that are closed.
CREATE INDEX dead_letter_jobs_open ON {schema}.dead_letter_jobs (seq)
    WHERE resolution IN ('pending', 'investigating');
CREATE INDEX dead_letter_jobs_open_type ON {schema}.dead_letter_jobs (type, seq)
    WHERE resolution IN ('pending', 'investigating');
-- What is pruned of those that are closed.
CREATE INDEX dead_letter_jobs_closed ON {schema}.dead_letter_jobs (resolved_at)
    WHERE resolution IN ('resolved', 'ignored');
-- All that a group of alike letters is counted from.
CREATE INDEX dead_letter_jobs_group ON {schema}.dead_letter_jobs (fingerprint, type, seq)
    INCLUDE (resolution, created_at, tenant_id);
COMMENT ON TABLE {schema}.dead_letter_jobs IS 'Jobs that could not be done, kept for a person to resolve.';
COMMENT ON COLUMN {schema}.dead_letter_jobs.seq IS 'Grows with every death; pages go by it, newest first.';
COMMENT ON COLUMN {schema}.dead_letter_jobs.created_at IS 'When the job died.';
COMMENT ON COLUMN {schema}.dead_letter_jobs.resolved_at IS 'When a person was done with it.';
COMMENT ON COLUMN {schema}.dead_letter_jobs.attempts IS 'Attempts it had spent.';
COMMENT ON COLUMN {schema}.dead_letter_jobs.rescues IS 'How often its process had died under it.';
COMMENT ON COLUMN {schema}.dead_letter_jobs.job_id IS 'The job that died.';
COMMENT ON COLUMN {schema}.dead_letter_jobs.type IS 'The type of the job.';
COMMENT ON COLUMN {schema}.dead_letter_jobs.queue IS 'The queue of the job.';
COMMENT ON COLUMN {schema}.dead_letter_jobs.tenant_id IS 'The tenant of the job.';
COMMENT ON COLUMN {schema}.dead_letter_jobs.reason IS 'Why it is here.';
COMMENT ON COLUMN {schema}.dead_letter_jobs.error IS 'The last error, redacted.';
COMMENT ON COLUMN {schema}.dead_letter_jobs.error_code IS 'The name of the last exception.';
COMMENT ON COLUMN {schema}.dead_letter_jobs.fingerprint
    IS 'The same for errors of the same kind in the same place.';
COMMENT ON COLUMN {schema}.dead_letter_jobs.resolution IS 'How far a person has got with it.';
COMMENT ON COLUMN {schema}.dead_letter_jobs.notes IS 'What that person wrote.';
COMMENT ON COLUMN {schema}.dead_letter_jobs.resolved_by IS 'Who that person is.';
COMMENT ON COLUMN {schema}.dead_letter_jobs.canary_of
    IS 'The group it was replayed for, ahead of the others.';
COMMENT ON COLUMN {schema}.dead_letter_jobs.snapshot IS 'The job as it was when it died.';
COMMENT ON COLUMN {schema}.dead_letter_jobs.executions IS 'Its last executions.';

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
COMMENT ON TABLE {schema}.job_dependencies IS 'Edges: which job waits, or waited, for which.';
COMMENT ON COLUMN {schema}.job_dependencies.created_at IS 'When the edge was made.';
COMMENT ON COLUMN {schema}.job_dependencies.closed_at IS 'When the parent''s end closed it.';
COMMENT ON COLUMN {schema}.job_dependencies.position
    IS 'The place of the parent''s result in a list of several.';
COMMENT ON COLUMN {schema}.job_dependencies.child_id IS 'The job that waits.';
COMMENT ON COLUMN {schema}.job_dependencies.parent_id IS 'The job that is waited for.';
COMMENT ON COLUMN {schema}.job_dependencies.kind IS 'What the child needs of the parent.';
COMMENT ON COLUMN {schema}.job_dependencies.argument
    IS 'The argument of the child that the parent''s result fills.';
COMMENT ON COLUMN {schema}.job_dependencies.condition IS 'What must hold of the parent''s result.';
COMMENT ON COLUMN {schema}.job_dependencies.on_failure IS 'What becomes of the child when the parent fails.';
COMMENT ON COLUMN {schema}.job_dependencies.on_requeue
    IS 'What becomes of the child when a failed parent is requeued.';
COMMENT ON COLUMN {schema}.job_dependencies.outcome IS 'How the edge was closed; empty while it is open.';
COMMENT ON COLUMN {schema}.job_dependencies.result IS 'The parent''s result, until it has been passed on.';

-- The last job in line for each order key that has one.
CREATE TABLE {schema}.order_lines (
    tenant_id text COLLATE "C" NOT NULL,
    order_key text COLLATE "C" NOT NULL,
    last_id   text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, order_key)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_cost_delay = 0);
CREATE INDEX order_lines_last ON {schema}.order_lines (last_id);
COMMENT ON TABLE {schema}.order_lines IS 'The last job in line for each order key that has one.';
COMMENT ON COLUMN {schema}.order_lines.tenant_id IS 'The tenant the line belongs to.';
COMMENT ON COLUMN {schema}.order_lines.order_key IS 'What the jobs in line have in common.';
COMMENT ON COLUMN {schema}.order_lines.last_id IS 'The job the next one waits for.';

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
COMMENT ON TABLE {schema}.job_schedules IS 'Which jobs are enqueued again and again, and when.';
COMMENT ON COLUMN {schema}.job_schedules.interval_ms IS 'The time between two runs.';
COMMENT ON COLUMN {schema}.job_schedules.starts_at IS 'The earliest run.';
COMMENT ON COLUMN {schema}.job_schedules.ends_at IS 'The latest run.';
COMMENT ON COLUMN {schema}.job_schedules.expires_at IS 'When the schedule itself is deleted.';
COMMENT ON COLUMN {schema}.job_schedules.last_run_at IS 'The time of the last run.';
COMMENT ON COLUMN {schema}.job_schedules.next_run_at IS 'The time of the next run.';
COMMENT ON COLUMN {schema}.job_schedules.created_at IS 'When the schedule was made.';
COMMENT ON COLUMN {schema}.job_schedules.updated_at IS 'When it last changed.';
COMMENT ON COLUMN {schema}.job_schedules.max_runs IS 'After how many runs it ends.';
COMMENT ON COLUMN {schema}.job_schedules.run_count IS 'How many runs it had.';
COMMENT ON COLUMN {schema}.job_schedules.revision
    IS 'Grows with every change, so that two processes never act on the same state.';
COMMENT ON COLUMN {schema}.job_schedules.enabled IS 'Whether it runs at all.';
COMMENT ON COLUMN {schema}.job_schedules.by_operator IS 'Whether a person made it, and not code.';
COMMENT ON COLUMN {schema}.job_schedules.id IS 'The schedule''s id.';
COMMENT ON COLUMN {schema}.job_schedules.name IS 'Its name, unique within the tenant.';
COMMENT ON COLUMN {schema}.job_schedules.type IS 'The type of the jobs it enqueues.';
COMMENT ON COLUMN {schema}.job_schedules.kind IS 'How it tells its times.';
COMMENT ON COLUMN {schema}.job_schedules.tenant_id IS 'The tenant of the jobs it enqueues.';
COMMENT ON COLUMN {schema}.job_schedules.expression IS 'The cron expression.';
COMMENT ON COLUMN {schema}.job_schedules.zone IS 'The time zone the expression is read in.';
COMMENT ON COLUMN {schema}.job_schedules.misfire IS 'What to do about missed times.';
COMMENT ON COLUMN {schema}.job_schedules.created_by IS 'Who made it.';
COMMENT ON COLUMN {schema}.job_schedules.payload_template IS 'The arguments, with places to fill in.';
COMMENT ON COLUMN {schema}.job_schedules.options IS 'The other fields of the jobs it enqueues.';
COMMENT ON COLUMN {schema}.job_schedules.metadata IS 'What the caller wants to remember with it.';

CREATE TABLE {schema}.pauses (
    created_at timestamptz NOT NULL,
    scope      text COLLATE "C" NOT NULL CHECK (scope IN ('job', 'queue', 'type', 'tenant')),
    name       text COLLATE "C" NOT NULL,
    reason     text,
    paused_by  text,
    PRIMARY KEY (scope, name)
);
COMMENT ON TABLE {schema}.pauses IS 'What is held back until somebody takes the row away.';
COMMENT ON COLUMN {schema}.pauses.created_at IS 'Since when.';
COMMENT ON COLUMN {schema}.pauses.scope IS 'Whether a job, a queue, a type or a tenant is paused.';
COMMENT ON COLUMN {schema}.pauses.name IS 'Which one.';
COMMENT ON COLUMN {schema}.pauses.reason IS 'Why.';
COMMENT ON COLUMN {schema}.pauses.paused_by IS 'By whom.';

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
COMMENT ON TABLE {schema}.limits IS 'How many jobs may run, start or wait under a name.';
COMMENT ON COLUMN {schema}.limits.capacity IS 'How many.';
COMMENT ON COLUMN {schema}.limits.interval_ms IS 'In how much time, for a rate.';
COMMENT ON COLUMN {schema}.limits.updated_at IS 'When it was last set.';
COMMENT ON COLUMN {schema}.limits.by_operator IS 'Whether a person set it, which code then leaves alone.';
COMMENT ON COLUMN {schema}.limits.scope IS 'Whether it is about a type, a key, a tenant or a queue.';
COMMENT ON COLUMN {schema}.limits.name IS 'About which one; * is each for itself.';
COMMENT ON COLUMN {schema}.limits.kind IS 'Whether it bounds concurrency, a rate or a depth.';

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
COMMENT ON TABLE {schema}.slots IS 'How many jobs under a concurrency limit each process may run at once.';
COMMENT ON COLUMN {schema}.slots.slots IS 'How many.';
COMMENT ON COLUMN {schema}.slots.scope IS 'The scope of the limit.';
COMMENT ON COLUMN {schema}.slots.name IS 'The name of the limit.';
COMMENT ON COLUMN {schema}.slots.owner IS 'The process.';

CREATE TABLE {schema}.rate_starts (
    scope  text COLLATE "C" NOT NULL,
    name   text COLLATE "C" NOT NULL,
    starts jsonb NOT NULL,
    PRIMARY KEY (scope, name)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE {schema}.rate_starts IS 'The latest starts under each rate.';
COMMENT ON COLUMN {schema}.rate_starts.scope IS 'The scope of the limit.';
COMMENT ON COLUMN {schema}.rate_starts.name IS 'The name of the limit.';
COMMENT ON COLUMN {schema}.rate_starts.starts IS 'Pairs of milliseconds and count, the oldest first.';

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
COMMENT ON TABLE {schema}.breakers
    IS 'Circuit breakers, which hold job types back while what they depend on is down.';
COMMENT ON COLUMN {schema}.breakers.cool_down_ms IS 'How long it stays open.';
COMMENT ON COLUMN {schema}.breakers.opened_at IS 'When it opened; empty while it is closed.';
COMMENT ON COLUMN {schema}.breakers.updated_at IS 'When it last changed.';
COMMENT ON COLUMN {schema}.breakers.failures IS 'How many failures in a row open it.';
COMMENT ON COLUMN {schema}.breakers.failed IS 'How many there were.';
COMMENT ON COLUMN {schema}.breakers.name IS 'What the types depend on.';
COMMENT ON COLUMN {schema}.breakers.types IS 'The job types it guards.';
COMMENT ON COLUMN {schema}.breakers.probe_id IS 'The job that tries whether it may close.';

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
    types        text[] NOT NULL,
    declared_queues text[] NOT NULL DEFAULT '{}'
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE {schema}.workers IS 'The worker processes, as of their last heartbeat.';
COMMENT ON COLUMN {schema}.workers.started_at IS 'When the process started.';
COMMENT ON COLUMN {schema}.workers.heartbeat_at IS 'When it was last heard of.';
COMMENT ON COLUMN {schema}.workers.completed IS 'Jobs it completed.';
COMMENT ON COLUMN {schema}.workers.failed IS 'Jobs it failed.';
COMMENT ON COLUMN {schema}.workers.poll_age_ms IS 'How long ago it last asked for jobs.';
COMMENT ON COLUMN {schema}.workers.cpu_percent IS 'The processor time it takes.';
COMMENT ON COLUMN {schema}.workers.memory_mb IS 'The memory it takes.';
COMMENT ON COLUMN {schema}.workers.pid IS 'Its process id.';
COMMENT ON COLUMN {schema}.workers.concurrency IS 'How many jobs it runs at once at most.';
COMMENT ON COLUMN {schema}.workers.running IS 'How many it runs.';
COMMENT ON COLUMN {schema}.workers.max_priority IS 'The least urgent priority it takes.';
COMMENT ON COLUMN {schema}.workers.owner IS 'What leases call it.';
COMMENT ON COLUMN {schema}.workers.name IS 'Its name.';
COMMENT ON COLUMN {schema}.workers.node IS 'Its host.';
COMMENT ON COLUMN {schema}.workers.state IS 'Whether it runs or drains.';
COMMENT ON COLUMN {schema}.workers.queues IS 'The queues it serves; empty for all.';
COMMENT ON COLUMN {schema}.workers.types IS 'The job types it knows.';
COMMENT ON COLUMN {schema}.workers.declared_queues IS 'The queues that its types use.';

CREATE TABLE {schema}.leaders (
    until timestamptz NOT NULL,
    role  text COLLATE "C" PRIMARY KEY,
    owner text COLLATE "C" NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE {schema}.leaders IS 'Who runs the passes that only one process may run.';
COMMENT ON COLUMN {schema}.leaders.until IS 'Until when, by this server''s clock.';
COMMENT ON COLUMN {schema}.leaders.role IS 'Which passes.';
COMMENT ON COLUMN {schema}.leaders.owner IS 'The process that runs them.';

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
COMMENT ON TABLE {schema}.metrics IS 'Counters and gauges per step of time.';
COMMENT ON COLUMN {schema}.metrics.resolution_ms IS 'The length of the step.';
COMMENT ON COLUMN {schema}.metrics.bucket IS 'When the step began, in milliseconds.';
COMMENT ON COLUMN {schema}.metrics.value IS 'The sum, or the sample.';
COMMENT ON COLUMN {schema}.metrics.type IS 'The job type; empty for a gauge of a queue.';
COMMENT ON COLUMN {schema}.metrics.queue IS 'The queue.';
COMMENT ON COLUMN {schema}.metrics.name IS 'What was counted.';

-- Only appended to, so that two settles never meet on the row of one counter; a roll-up folds
-- them into metrics.
CREATE TABLE {schema}.metric_deltas (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    bucket bigint NOT NULL,
    sums   jsonb NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE {schema}.metric_deltas IS 'What settles counted and no roll-up has folded into metrics yet.';
COMMENT ON COLUMN {schema}.metric_deltas.id IS 'The order they came in.';
COMMENT ON COLUMN {schema}.metric_deltas.bucket IS 'When their step of ten seconds began, in milliseconds.';
COMMENT ON COLUMN {schema}.metric_deltas.sums IS 'Lists of type, queue, name and count.';

CREATE TABLE {schema}.followers (
    name     text COLLATE "C" PRIMARY KEY,
    statuses text[] NOT NULL
);
COMMENT ON TABLE {schema}.followers
    IS 'Who is told what becomes of jobs; with the first one come the triggers that record it.';
COMMENT ON COLUMN {schema}.followers.name IS 'The extension and its follower.';
COMMENT ON COLUMN {schema}.followers.statuses IS 'It is told when a job comes to one of these.';

CREATE TABLE {schema}.job_changes (
    seq       bigint GENERATED ALWAYS AS IDENTITY,
    fence     bigint NOT NULL,
    at        timestamptz NOT NULL,
    follower  text COLLATE "C" NOT NULL,
    job_id    text COLLATE "C" NOT NULL,
    type      text COLLATE "C" NOT NULL,
    queue     text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    status    text COLLATE "C" NOT NULL,
    PRIMARY KEY (follower, seq)
) WITH (autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 1000,
    autovacuum_vacuum_cost_delay = 0);
COMMENT ON TABLE {schema}.job_changes
    IS 'One row for each follower and change, until the follower has been told.';
COMMENT ON COLUMN {schema}.job_changes.seq IS 'Grows with every change of a job.';
COMMENT ON COLUMN {schema}.job_changes.fence IS 'The job''s fence at that moment.';
COMMENT ON COLUMN {schema}.job_changes.at IS 'When the job changed.';
COMMENT ON COLUMN {schema}.job_changes.follower IS 'Who is to be told.';
COMMENT ON COLUMN {schema}.job_changes.job_id IS 'The job.';
COMMENT ON COLUMN {schema}.job_changes.type IS 'Its type.';
COMMENT ON COLUMN {schema}.job_changes.queue IS 'Its queue.';
COMMENT ON COLUMN {schema}.job_changes.tenant_id IS 'Whose it is; empty where there are no tenants.';
COMMENT ON COLUMN {schema}.job_changes.status IS 'The status it came to.';

CREATE TABLE {schema}.records (
    revision   bigint NOT NULL,
    updated_at timestamptz NOT NULL,
    expires_at timestamptz,
    kind       text COLLATE "C" NOT NULL,
    name       text COLLATE "C" NOT NULL,
    document   json NOT NULL,
    PRIMARY KEY (kind, name)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_cost_delay = 0);
CREATE INDEX records_expiring ON {schema}.records (expires_at) WHERE expires_at IS NOT NULL;
COMMENT ON TABLE {schema}.records IS 'Small documents of the server: who may enter, which alerts stand.';
COMMENT ON COLUMN {schema}.records.revision IS 'Grows with every change of the record.';
COMMENT ON COLUMN {schema}.records.updated_at IS 'When the record last changed.';
COMMENT ON COLUMN {schema}.records.expires_at IS 'When the record stops being there; empty for never.';
COMMENT ON COLUMN {schema}.records.kind IS 'What sort of record it is.';
COMMENT ON COLUMN {schema}.records.name IS 'The record''s name among those of its kind.';
COMMENT ON COLUMN {schema}.records.document IS 'What is kept.';

-- The details are text, byte for byte what the hash was made of.
CREATE TABLE {schema}.audit_log (
    seq       bigint PRIMARY KEY,
    at        timestamptz NOT NULL,
    actor     text COLLATE "C" NOT NULL,
    action    text COLLATE "C" NOT NULL,
    subject   text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    details   text NOT NULL,
    previous  text COLLATE "C" NOT NULL,
    hash      text COLLATE "C" NOT NULL
);
-- What one person did, what was done to one thing and what concerns one tenant, newest first, without
-- a look at the rest of the log.
CREATE INDEX audit_log_actor ON {schema}.audit_log (actor, seq);
CREATE INDEX audit_log_subject ON {schema}.audit_log (subject, seq);
CREATE INDEX audit_log_tenant ON {schema}.audit_log (tenant_id, seq);
COMMENT ON TABLE {schema}.audit_log IS 'Who changed what; each row carries the hash of the one before.';
COMMENT ON COLUMN {schema}.audit_log.seq IS 'The place in the chain, counted from 1 without gaps.';
COMMENT ON COLUMN {schema}.audit_log.at IS 'When.';
COMMENT ON COLUMN {schema}.audit_log.actor IS 'Who.';
COMMENT ON COLUMN {schema}.audit_log.action IS 'What was done.';
COMMENT ON COLUMN {schema}.audit_log.subject IS 'To what.';
COMMENT ON COLUMN {schema}.audit_log.tenant_id IS 'Whose it was; empty where there are no tenants.';
COMMENT ON COLUMN {schema}.audit_log.details IS 'What else there is to say, as a JSON object.';
COMMENT ON COLUMN {schema}.audit_log.previous IS 'The hash of the row before.';
COMMENT ON COLUMN {schema}.audit_log.hash IS 'The hash of this row.';

-- The names the Global Context Network knows this queue by. It shows a tenant its own rows only.
CREATE VIEW {schema}.job_queue WITH (security_invoker = true) AS
SELECT id, type, status, priority, scheduled_at, lease_owner, lease_until, payload,
    key AS idempotency_key, attempts, max_retries, error, created_at, updated_at, started_at,
    completed_at, result
FROM {schema}.jobs;
COMMENT ON VIEW {schema}.job_queue IS 'The jobs by the names the Global Context Network has for them.';
