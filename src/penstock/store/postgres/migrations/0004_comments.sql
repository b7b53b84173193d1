-- One sentence for everything a person may find in the schema.

COMMENT ON TABLE {schema}.jobs IS 'All jobs: the living ones in jobs_live, the ended ones in jobs_ended.';
COMMENT ON COLUMN {schema}.jobs.seq IS 'Grows with every job made; of one rank, the lower one goes first.';
COMMENT ON COLUMN {schema}.jobs.rank
    IS 'The order within a lane: when the job fell due, plus an hour per step of priority.';
COMMENT ON COLUMN {schema}.jobs.fence IS 'Grows with every lease granted or taken away, and is never reset.';
COMMENT ON COLUMN {schema}.jobs.timeout_ms IS 'How long one execution may take.';
COMMENT ON COLUMN {schema}.jobs.retry_delay_ms
    IS 'The first delay before a retry, where the job has its own.';
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

COMMENT ON TABLE {schema}.job_keys IS 'Unique keys that are taken.';
COMMENT ON COLUMN {schema}.job_keys.expires_at IS 'When a key with a window is free again.';
COMMENT ON COLUMN {schema}.job_keys.tenant_id IS 'The tenant within which it is unique.';
COMMENT ON COLUMN {schema}.job_keys.type IS 'The job type within which it is unique.';
COMMENT ON COLUMN {schema}.job_keys.key IS 'The key.';
COMMENT ON COLUMN {schema}.job_keys.job_id IS 'The job that holds it.';
COMMENT ON COLUMN {schema}.job_keys.scope
    IS 'How long it is held: until the first claim, until the end, for a window, or for ever.';

COMMENT ON TABLE {schema}.job_logs IS 'Lines that handlers wrote about their jobs.';
COMMENT ON COLUMN {schema}.job_logs.seq IS 'The order of the lines.';
COMMENT ON COLUMN {schema}.job_logs.fence IS 'The lease the line was written under.';
COMMENT ON COLUMN {schema}.job_logs.at IS 'When it was written.';
COMMENT ON COLUMN {schema}.job_logs.job_id IS 'The job it is about.';
COMMENT ON COLUMN {schema}.job_logs.level IS 'How grave it is.';
COMMENT ON COLUMN {schema}.job_logs.message IS 'The line, redacted.';

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

COMMENT ON TABLE {schema}.order_lines IS 'The last job in line for each order key that has one.';
COMMENT ON COLUMN {schema}.order_lines.tenant_id IS 'The tenant the line belongs to.';
COMMENT ON COLUMN {schema}.order_lines.order_key IS 'What the jobs in line have in common.';
COMMENT ON COLUMN {schema}.order_lines.last_id IS 'The job the next one waits for.';

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

COMMENT ON TABLE {schema}.pauses IS 'What is held back until somebody takes the row away.';
COMMENT ON COLUMN {schema}.pauses.created_at IS 'Since when.';
COMMENT ON COLUMN {schema}.pauses.scope IS 'Whether a job, a queue, a type or a tenant is paused.';
COMMENT ON COLUMN {schema}.pauses.name IS 'Which one.';
COMMENT ON COLUMN {schema}.pauses.reason IS 'Why.';
COMMENT ON COLUMN {schema}.pauses.paused_by IS 'By whom.';

COMMENT ON TABLE {schema}.limits IS 'How many jobs may run, start or wait under a name.';
COMMENT ON COLUMN {schema}.limits.capacity IS 'How many.';
COMMENT ON COLUMN {schema}.limits.interval_ms IS 'In how much time, for a rate.';
COMMENT ON COLUMN {schema}.limits.updated_at IS 'When it was last set.';
COMMENT ON COLUMN {schema}.limits.by_operator IS 'Whether a person set it, which code then leaves alone.';
COMMENT ON COLUMN {schema}.limits.scope IS 'Whether it is about a type, a key, a tenant or a queue.';
COMMENT ON COLUMN {schema}.limits.name IS 'About which one; * is each for itself.';
COMMENT ON COLUMN {schema}.limits.kind IS 'Whether it bounds concurrency, a rate or a depth.';

COMMENT ON TABLE {schema}.slots IS 'How many jobs under a concurrency limit each process may run at once.';
COMMENT ON COLUMN {schema}.slots.slots IS 'How many.';
COMMENT ON COLUMN {schema}.slots.scope IS 'The scope of the limit.';
COMMENT ON COLUMN {schema}.slots.name IS 'The name of the limit.';
COMMENT ON COLUMN {schema}.slots.owner IS 'The process.';

COMMENT ON TABLE {schema}.rate_starts IS 'The latest starts under each rate.';
COMMENT ON COLUMN {schema}.rate_starts.scope IS 'The scope of the limit.';
COMMENT ON COLUMN {schema}.rate_starts.name IS 'The name of the limit.';
COMMENT ON COLUMN {schema}.rate_starts.starts IS 'Pairs of milliseconds and count, the oldest first.';

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

COMMENT ON TABLE {schema}.leaders IS 'Who runs the passes that only one process may run.';
COMMENT ON COLUMN {schema}.leaders.until IS 'Until when, by this server''s clock.';
COMMENT ON COLUMN {schema}.leaders.role IS 'Which passes.';
COMMENT ON COLUMN {schema}.leaders.owner IS 'The process that runs them.';

COMMENT ON TABLE {schema}.metrics IS 'Counters and gauges per step of time.';
COMMENT ON COLUMN {schema}.metrics.resolution_ms IS 'The length of the step.';
COMMENT ON COLUMN {schema}.metrics.bucket IS 'When the step began, in milliseconds.';
COMMENT ON COLUMN {schema}.metrics.value IS 'The sum, or the sample.';
COMMENT ON COLUMN {schema}.metrics.type IS 'The job type; empty for a gauge of a queue.';
COMMENT ON COLUMN {schema}.metrics.queue IS 'The queue.';
COMMENT ON COLUMN {schema}.metrics.name IS 'What was counted.';

COMMENT ON TABLE {schema}.metric_deltas IS 'What settles counted and no roll-up has folded into metrics yet.';
COMMENT ON COLUMN {schema}.metric_deltas.id IS 'The order they came in.';
COMMENT ON COLUMN {schema}.metric_deltas.bucket IS 'When their step of ten seconds began, in milliseconds.';
COMMENT ON COLUMN {schema}.metric_deltas.sums IS 'Lists of type, queue, name and count.';

COMMENT ON TABLE {schema}.audit_log IS 'Who changed what; each row carries the hash of the one before.';
COMMENT ON COLUMN {schema}.audit_log.seq IS 'The order of the rows.';
COMMENT ON COLUMN {schema}.audit_log.at IS 'When.';
COMMENT ON COLUMN {schema}.audit_log.actor IS 'Who.';
COMMENT ON COLUMN {schema}.audit_log.action IS 'What was done.';
COMMENT ON COLUMN {schema}.audit_log.subject IS 'To what.';
COMMENT ON COLUMN {schema}.audit_log.details IS 'What else there is to say.';
COMMENT ON COLUMN {schema}.audit_log.previous IS 'The hash of the row before.';
COMMENT ON COLUMN {schema}.audit_log.hash IS 'The hash of this row.';

COMMENT ON TABLE {schema}.penstock_meta IS 'What penstock knows about this schema, its version above all.';
COMMENT ON COLUMN {schema}.penstock_meta.name IS 'The name of the fact.';
COMMENT ON COLUMN {schema}.penstock_meta.value IS 'The fact.';

COMMENT ON TABLE {schema}.jobs_live IS 'Jobs that wait or run: small, busy, and all that a claim looks at.';
COMMENT ON TABLE {schema}.jobs_ended IS 'Jobs that have ended, until they are pruned.';
COMMENT ON SEQUENCE {schema}.jobs_seq IS 'The order in which jobs were made.';
COMMENT ON VIEW {schema}.job_queue IS 'The jobs by the names the Global Context Network has for them.';

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
