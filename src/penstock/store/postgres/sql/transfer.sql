-- Pages begin with the columns that their order goes by, and go on with those that
-- contract/transfer.py lists; adopt takes rows as JSON objects of them, with lease_left_ms as a time.

-- name: read_in_order
-- Without figures about new tables, every page would be made by sorting a whole one.
SELECT set_config('enable_seqscan', 'off', true), set_config('enable_sort', 'off', true);

-- name: analyze
ANALYZE jobs, job_executions, job_logs, dead_letter_jobs, job_keys, job_dependencies, order_lines;

-- name: marks
SELECT substr(name, 6), value FROM penstock_meta WHERE name LIKE 'move.%';

-- name: set_mark
INSERT INTO penstock_meta (name, value) VALUES ('move.' || ?::text, ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: drop_mark
DELETE FROM penstock_meta WHERE name = 'move.' || ?::text;

-- name: tally_parts
SELECT 'jobs', count(*) FROM jobs
UNION ALL SELECT 'executions', count(*) FROM job_executions
UNION ALL SELECT 'logs', count(*) FROM job_logs
UNION ALL SELECT 'dead letters', count(*) FROM dead_letter_jobs
UNION ALL SELECT 'keys', count(*) FROM job_keys
UNION ALL SELECT 'dependencies', count(*) FROM job_dependencies
UNION ALL SELECT 'lines', count(*) FROM order_lines
UNION ALL SELECT 'schedules', count(*) FROM job_schedules
UNION ALL SELECT 'pauses', count(*) FROM pauses
UNION ALL SELECT 'limits', count(*) FROM limits
UNION ALL SELECT 'rates', count(*) FROM rate_starts
UNION ALL SELECT 'breakers', count(*) FROM breakers
UNION ALL SELECT 'metrics', count(*) FROM metrics WHERE resolution_ms > 0
UNION ALL SELECT 'records', count(*) FROM records
UNION ALL SELECT 'audit', count(*) FROM audit_log
UNION ALL SELECT 'followers', count(*) FROM followers
UNION ALL SELECT 'changes', count(*) FROM job_changes;

-- name: tally_statuses
SELECT status, count(*), sum(fence), sum(attempts) FROM jobs GROUP BY status;

-- name: clear
TRUNCATE jobs, job_executions, job_logs, dead_letter_jobs, job_keys, job_dependencies, order_lines,
    job_schedules, pauses, limits, slots, rate_starts, breakers, workers, leaders, metrics,
    metric_deltas, records, audit_log, followers, job_changes;

-- name: clear_marks
DELETE FROM penstock_meta WHERE name IN ('rolled_up_at', 'summed_to') OR name LIKE 'move.%';

-- name: page_jobs
-- By their ids, as jobs are listed here; seq has no index and only decides between equal ranks.
SELECT id,
    id, type, queue, category, status, priority, rank, payload, result, error, error_details,
    attempts, max_retries, snoozes, rescues, returns, fence, retry_delay_ms, backoff_multiplier,
    timeout_ms, ms(scheduled_at), ms(expires_at), lease_owner, ms(lease_until),
    ms(cancel_requested_at), cancel_reason, progress_percent, progress_message, checkpoint,
    tenant_id, workspace_id, created_by, parent_job_id, schedule_id, waiting_on, key, key_scope,
    limit_key, order_key, to_json(tags)::text, metadata, trace_context, ms(created_at),
    ms(updated_at), ms(queued_at), ms(started_at), ms(completed_at), ms(failed_at)
FROM jobs WHERE id > ?::text
ORDER BY id LIMIT ?;

-- name: adopt_jobs
INSERT INTO jobs (
    live, id, type, queue, category, status, priority, rank, payload, result, error, error_details,
    attempts, max_retries, snoozes, rescues, returns, fence, retry_delay_ms, backoff_multiplier,
    timeout_ms, scheduled_at, expires_at, lease_owner, lease_until, cancel_requested_at,
    cancel_reason, progress_percent, progress_message, checkpoint, tenant_id, workspace_id,
    created_by, parent_job_id, schedule_id, waiting_on, key, key_scope, limit_key, order_key, tags,
    metadata, trace_context, created_at, updated_at, queued_at, started_at, completed_at, failed_at
)
SELECT
    status NOT IN ('completed', 'cancelled', 'dead_letter'), id, type, queue, category, status,
    priority, rank, payload::json, result::json, error, error_details::json, attempts, max_retries,
    snoozes, rescues, returns, fence, retry_delay_ms, backoff_multiplier, timeout_ms,
    at(scheduled_at), at(expires_at), lease_owner, at(lease_left_ms), at(cancel_requested_at),
    cancel_reason, progress_percent, progress_message, checkpoint, tenant_id, workspace_id,
    created_by, parent_job_id, schedule_id, waiting_on, key, key_scope, limit_key, order_key, tags,
    metadata::json, trace_context, at(created_at), at(updated_at), at(queued_at), at(started_at),
    at(completed_at), at(failed_at)
FROM json_to_recordset(:rows::json) AS given (
    id text, type text, queue text, category text, status text, priority smallint, rank bigint,
    payload text, result text, error text, error_details text, attempts integer,
    max_retries integer, snoozes integer, rescues integer, returns integer, fence bigint,
    retry_delay_ms bigint, backoff_multiplier double precision, timeout_ms bigint,
    scheduled_at bigint, expires_at bigint, lease_owner text, lease_left_ms bigint,
    cancel_requested_at bigint, cancel_reason text, progress_percent double precision,
    progress_message text, checkpoint text, tenant_id text, workspace_id text, created_by text,
    parent_job_id text, schedule_id text, waiting_on integer, key text, key_scope text,
    limit_key text, order_key text, tags text[], metadata text, trace_context text,
    created_at bigint, updated_at bigint, queued_at bigint, started_at bigint, completed_at bigint,
    failed_at bigint
)
ON CONFLICT DO NOTHING;

-- name: page_executions
SELECT job_id, fence,
    job_id, fence, status, ms(started_at), ms(ended_at), wait_ms, duration_ms, cpu_ms, memory_kb,
    worker, error_class, error_code, error, error_stack, result
FROM job_executions WHERE (job_id, fence) > (?::text, ?::bigint)
ORDER BY job_id, fence LIMIT ?;

-- name: adopt_executions
INSERT INTO job_executions (
    job_id, fence, status, started_at, ended_at, wait_ms, duration_ms, cpu_ms, memory_kb, worker,
    error_class, error_code, error, error_stack, result
)
SELECT
    job_id, fence, status, at(started_at), at(ended_at), wait_ms, duration_ms, cpu_ms, memory_kb,
    worker, error_class, error_code, error, error_stack, result::json
FROM json_to_recordset(:rows::json) AS given (
    job_id text, fence bigint, status text, started_at bigint, ended_at bigint, wait_ms bigint,
    duration_ms bigint, cpu_ms bigint, memory_kb bigint, worker text, error_class text,
    error_code text, error text, error_stack text, result text
)
ON CONFLICT DO NOTHING;

-- name: page_logs
SELECT seq,
    job_id, fence, ms(at), level, message
FROM job_logs WHERE seq > ?::bigint
ORDER BY seq LIMIT ?;

-- name: adopt_logs
INSERT INTO job_logs (
    job_id, fence, at, level, message
)
SELECT
    job_id, fence, at(at), level, message
FROM json_to_recordset(:rows::json) AS given (
    job_id text, fence bigint, at bigint, level text, message text
);

-- name: page_dead_letters
SELECT seq,
    job_id, type, queue, tenant_id, reason, error, error_code, fingerprint, attempts, rescues,
    snapshot, executions, resolution, notes, resolved_by, ms(resolved_at), ms(created_at), canary_of
FROM dead_letter_jobs WHERE seq > ?::bigint
ORDER BY seq LIMIT ?;

-- name: adopt_dead_letters
INSERT INTO dead_letter_jobs (
    job_id, type, queue, tenant_id, reason, error, error_code, fingerprint, attempts, rescues,
    snapshot, executions, resolution, notes, resolved_by, resolved_at, created_at, canary_of
)
SELECT
    job_id, type, queue, tenant_id, reason, error, error_code, fingerprint, attempts, rescues,
    snapshot::json, executions::json, resolution, notes, resolved_by, at(resolved_at),
    at(created_at), canary_of
FROM json_to_recordset(:rows::json) AS given (
    job_id text, type text, queue text, tenant_id text, reason text, error text, error_code text,
    fingerprint text, attempts integer, rescues integer, snapshot text, executions text,
    resolution text, notes text, resolved_by text, resolved_at bigint, created_at bigint,
    canary_of text
)
ON CONFLICT DO NOTHING;

-- name: page_keys
SELECT tenant_id, type, key,
    tenant_id, type, key, job_id, scope, ms(expires_at)
FROM job_keys WHERE (tenant_id, type, key) > (?::text, ?::text, ?::text)
ORDER BY tenant_id, type, key LIMIT ?;

-- name: adopt_keys
INSERT INTO job_keys (
    tenant_id, type, key, job_id, scope, expires_at
)
SELECT
    tenant_id, type, key, job_id, scope, at(expires_at)
FROM json_to_recordset(:rows::json) AS given (
    tenant_id text, type text, key text, job_id text, scope text, expires_at bigint
)
ON CONFLICT DO NOTHING;

-- name: page_dependencies
SELECT child_id, parent_id, kind, argument,
    child_id, parent_id, kind, argument, position, condition, on_failure, on_requeue, outcome,
    result, ms(created_at), ms(closed_at)
FROM job_dependencies WHERE (child_id, parent_id, kind, argument) > (?::text, ?::text, ?::text, ?::text)
ORDER BY child_id, parent_id, kind, argument LIMIT ?;

-- name: adopt_dependencies
INSERT INTO job_dependencies (
    child_id, parent_id, kind, argument, position, condition, on_failure, on_requeue, outcome,
    result, created_at, closed_at
)
SELECT
    child_id, parent_id, kind, argument, position, condition, on_failure, on_requeue, outcome,
    result::json, at(created_at), at(closed_at)
FROM json_to_recordset(:rows::json) AS given (
    child_id text, parent_id text, kind text, argument text, position integer, condition text,
    on_failure text, on_requeue text, outcome text, result text, created_at bigint, closed_at bigint
)
ON CONFLICT DO NOTHING;

-- name: page_lines
SELECT last_id,
    tenant_id, order_key, last_id
FROM order_lines WHERE last_id > ?::text
ORDER BY last_id LIMIT ?;

-- name: adopt_lines
INSERT INTO order_lines (
    tenant_id, order_key, last_id
)
SELECT
    tenant_id, order_key, last_id
FROM json_to_recordset(:rows::json) AS given (
    tenant_id text, order_key text, last_id text
)
ON CONFLICT DO NOTHING;

-- name: page_schedules
SELECT id,
    id, name, type, kind, tenant_id, payload_template, options, expression, interval_ms, zone,
    misfire, enabled, ms(starts_at), ms(ends_at), ms(expires_at), max_runs, run_count,
    ms(last_run_at), ms(next_run_at), by_operator, created_by, metadata, ms(created_at),
    ms(updated_at), revision
FROM job_schedules WHERE id > ?::text
ORDER BY id LIMIT ?;

-- name: adopt_schedules
INSERT INTO job_schedules (
    id, name, type, kind, tenant_id, payload_template, options, expression, interval_ms, zone,
    misfire, enabled, starts_at, ends_at, expires_at, max_runs, run_count, last_run_at, next_run_at,
    by_operator, created_by, metadata, created_at, updated_at, revision
)
SELECT
    id, name, type, kind, tenant_id, payload::json, options::json, expression, interval_ms, zone,
    misfire, enabled, at(starts_at), at(ends_at), at(expires_at), max_runs, run_count,
    at(last_run_at), at(next_run_at), by_operator, created_by, metadata::json, at(created_at),
    at(updated_at), revision
FROM json_to_recordset(:rows::json) AS given (
    id text, name text, type text, kind text, tenant_id text, payload text, options text,
    expression text, interval_ms bigint, zone text, misfire text, enabled boolean, starts_at bigint,
    ends_at bigint, expires_at bigint, max_runs bigint, run_count bigint, last_run_at bigint,
    next_run_at bigint, by_operator boolean, created_by text, metadata text, created_at bigint,
    updated_at bigint, revision bigint
)
ON CONFLICT DO NOTHING;

-- name: page_pauses
SELECT scope, name,
    scope, name, reason, paused_by, ms(created_at)
FROM pauses WHERE (scope, name) > (?::text, ?::text)
ORDER BY scope, name LIMIT ?;

-- name: adopt_pauses
INSERT INTO pauses (
    scope, name, reason, paused_by, created_at
)
SELECT
    scope, name, reason, paused_by, at(created_at)
FROM json_to_recordset(:rows::json) AS given (
    scope text, name text, reason text, paused_by text, created_at bigint
)
ON CONFLICT DO NOTHING;

-- name: page_limits
SELECT scope, name, kind,
    scope, name, kind, capacity, interval_ms, by_operator, ms(updated_at)
FROM limits WHERE (scope, name, kind) > (?::text, ?::text, ?::text)
ORDER BY scope, name, kind LIMIT ?;

-- name: adopt_limits
INSERT INTO limits (
    scope, name, kind, capacity, interval_ms, by_operator, updated_at
)
SELECT
    scope, name, kind, capacity, interval_ms, by_operator, at(updated_at)
FROM json_to_recordset(:rows::json) AS given (
    scope text, name text, kind text, capacity bigint, interval_ms bigint, by_operator boolean,
    updated_at bigint
)
ON CONFLICT DO NOTHING;

-- name: page_rates
SELECT scope, name,
    scope, name, starts
FROM rate_starts WHERE (scope, name) > (?::text, ?::text)
ORDER BY scope, name LIMIT ?;

-- name: adopt_rates
INSERT INTO rate_starts (
    scope, name, starts
)
SELECT
    scope, name, starts::jsonb
FROM json_to_recordset(:rows::json) AS given (
    scope text, name text, starts text
)
ON CONFLICT DO NOTHING;

-- name: page_breakers
SELECT name,
    name, to_json(types)::text, failures, cool_down_ms, failed, ms(opened_at), probe_id,
    ms(updated_at)
FROM breakers WHERE name > ?::text
ORDER BY name LIMIT ?;

-- name: adopt_breakers
INSERT INTO breakers (
    name, types, failures, cool_down_ms, failed, opened_at, probe_id, updated_at
)
SELECT
    name, types, failures, cool_down_ms, failed, at(opened_at), probe_id, at(updated_at)
FROM json_to_recordset(:rows::json) AS given (
    name text, types text[], failures integer, cool_down_ms bigint, failed integer,
    opened_at bigint, probe_id text, updated_at bigint
)
ON CONFLICT DO NOTHING;

-- name: page_metrics
SELECT resolution_ms, bucket, type, queue, name,
    resolution_ms, bucket, type, queue, name, value
FROM metrics WHERE (resolution_ms, bucket, type, queue, name) > (?::bigint, ?::bigint, ?::text, ?::text, ?::text)
ORDER BY resolution_ms, bucket, type, queue, name LIMIT ?;

-- name: adopt_metrics
INSERT INTO metrics (
    resolution_ms, bucket, type, queue, name, value
)
SELECT
    resolution_ms, bucket, type, queue, name, value
FROM json_to_recordset(:rows::json) AS given (
    resolution_ms bigint, bucket bigint, type text, queue text, name text, value double precision
)
ON CONFLICT DO NOTHING;

-- name: page_records
SELECT kind, name,
    kind, name, document::text, revision, ms(updated_at), ms(expires_at)
FROM records WHERE (kind, name) > (?::text, ?::text)
ORDER BY kind, name LIMIT ?;

-- name: adopt_records
INSERT INTO records (
    kind, name, document, revision, updated_at, expires_at
)
SELECT
    kind, name, document::json, revision, at(updated_at), at(expires_at)
FROM json_to_recordset(:rows::json) AS given (
    kind text, name text, document text, revision bigint, updated_at bigint, expires_at bigint
)
ON CONFLICT DO NOTHING;

-- name: page_audit
SELECT seq,
    seq, ms(at), actor, action, subject, tenant_id, details, previous, hash
FROM audit_log WHERE seq > ?::bigint
ORDER BY seq LIMIT ?;

-- name: adopt_audit
INSERT INTO audit_log (
    seq, at, actor, action, subject, tenant_id, details, previous, hash
)
SELECT
    seq, at(at), actor, action, subject, tenant_id, details, previous, hash
FROM json_to_recordset(:rows::json) AS given (
    seq bigint, at bigint, actor text, action text, subject text, tenant_id text, details text,
    previous text, hash text
)
ON CONFLICT DO NOTHING;

-- name: page_followers
SELECT name,
    name, to_json(statuses)::text
FROM followers WHERE name > ?::text
ORDER BY name LIMIT ?;

-- name: adopt_followers
INSERT INTO followers (
    name, statuses
)
SELECT
    name, statuses
FROM json_to_recordset(:rows::json) AS given (
    name text, statuses text[]
)
ON CONFLICT DO NOTHING;

-- name: page_changes
SELECT follower, seq,
    follower, job_id, type, queue, tenant_id, status, fence, ms(at)
FROM job_changes WHERE (follower, seq) > (?::text, ?::bigint)
ORDER BY follower, seq LIMIT ?;

-- name: adopt_changes
INSERT INTO job_changes (
    follower, job_id, type, queue, tenant_id, status, fence, at
)
SELECT
    follower, job_id, type, queue, tenant_id, status, fence, at(at)
FROM json_to_recordset(:rows::json) AS given (
    follower text, job_id text, type text, queue text, tenant_id text, status text, fence bigint,
    at bigint
);
