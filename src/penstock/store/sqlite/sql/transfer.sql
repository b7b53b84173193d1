-- Pages begin with the columns that their order goes by, and go on with those that
-- contract/transfer.py lists; adopt takes them as listed, but with lease_until for the time left.

-- name: marks
SELECT substr(name, 6), value FROM penstock_meta WHERE name LIKE 'move.%';

-- name: set_mark
INSERT INTO penstock_meta (name, value) VALUES ('move.' || ?, ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value;

-- name: drop_mark
DELETE FROM penstock_meta WHERE name = 'move.' || ?;

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
DELETE FROM jobs;
DELETE FROM job_executions;
DELETE FROM job_logs;
DELETE FROM dead_letter_jobs;
DELETE FROM job_keys;
DELETE FROM job_dependencies;
DELETE FROM order_lines;
DELETE FROM job_schedules;
DELETE FROM pauses;
DELETE FROM limits;
DELETE FROM slots;
DELETE FROM rate_starts;
DELETE FROM breakers;
DELETE FROM workers;
DELETE FROM leaders;
DELETE FROM metrics;
DELETE FROM records;
DELETE FROM audit_log;
DELETE FROM followers;
DELETE FROM job_changes;

-- name: clear_marks
DELETE FROM penstock_meta WHERE name IN ('rolled_up_at', 'summed_to') OR name LIKE 'move.%';

-- name: page_jobs
SELECT seq,
    id, type, queue, category, status, priority, rank, CAST(payload AS BLOB), result,
    error, error_details, attempts, max_retries, snoozes, rescues, returns,
    fence, retry_delay_ms, backoff_multiplier, timeout_ms, scheduled_at,
    expires_at, lease_owner, lease_until, cancel_requested_at, cancel_reason,
    progress_percent, progress_message, checkpoint, tenant_id, workspace_id,
    created_by, parent_job_id, schedule_id, waiting_on, key, key_scope,
    limit_key, order_key, tags, metadata, trace_context, created_at,
    updated_at, queued_at, started_at, completed_at, failed_at
FROM jobs WHERE seq > ? ORDER BY seq LIMIT ?;

-- name: adopt_jobs
INSERT INTO jobs (
    id, type, queue, category, status, priority, rank, payload, result,
    error, error_details, attempts, max_retries, snoozes, rescues, returns,
    fence, retry_delay_ms, backoff_multiplier, timeout_ms, scheduled_at,
    expires_at, lease_owner, lease_until, cancel_requested_at, cancel_reason,
    progress_percent, progress_message, checkpoint, tenant_id, workspace_id,
    created_by, parent_job_id, schedule_id, waiting_on, key, key_scope,
    limit_key, order_key, tags, metadata, trace_context, created_at,
    updated_at, queued_at, started_at, completed_at, failed_at
) VALUES (
    ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
    ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
) ON CONFLICT DO NOTHING;

-- name: page_executions
SELECT job_id, fence,
    job_id, fence, status, started_at, ended_at, wait_ms, duration_ms, cpu_ms, memory_kb, worker,
    error_class, error_code, error, error_stack, result
FROM job_executions WHERE (job_id, fence) > (?, ?) ORDER BY job_id, fence LIMIT ?;

-- name: adopt_executions
INSERT INTO job_executions (
    job_id, fence, status, started_at, ended_at, wait_ms, duration_ms, cpu_ms, memory_kb, worker,
    error_class, error_code, error, error_stack, result
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: page_logs
SELECT seq, job_id, fence, at, level, message
FROM job_logs WHERE seq > ? ORDER BY seq LIMIT ?;

-- name: adopt_logs
INSERT INTO job_logs (job_id, fence, at, level, message) VALUES (?, ?, ?, ?, ?);

-- name: page_dead_letters
SELECT seq,
    job_id, type, queue, tenant_id, reason, error, error_code, fingerprint, attempts, rescues,
    CAST(snapshot AS BLOB), executions, resolution, notes, resolved_by, resolved_at, created_at,
    canary_of
FROM dead_letter_jobs WHERE seq > ? ORDER BY seq LIMIT ?;

-- name: adopt_dead_letters
INSERT INTO dead_letter_jobs (
    job_id, type, queue, tenant_id, reason, error, error_code, fingerprint, attempts, rescues,
    snapshot, executions, resolution, notes, resolved_by, resolved_at, created_at, canary_of
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: page_keys
SELECT tenant_id, type, key,
    tenant_id, type, key, job_id, scope, expires_at
FROM job_keys WHERE (tenant_id, type, key) > (?, ?, ?) ORDER BY tenant_id, type, key LIMIT ?;

-- name: adopt_keys
INSERT INTO job_keys (tenant_id, type, key, job_id, scope, expires_at)
VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: page_dependencies
SELECT child_id, parent_id, kind, argument,
    child_id, parent_id, kind, argument, position, condition, on_failure, on_requeue, outcome,
    result, created_at, closed_at
FROM job_dependencies WHERE (child_id, parent_id, kind, argument) > (?, ?, ?, ?)
ORDER BY child_id, parent_id, kind, argument LIMIT ?;

-- name: adopt_dependencies
INSERT INTO job_dependencies (
    child_id, parent_id, kind, argument, position, condition, on_failure, on_requeue, outcome,
    result, created_at, closed_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: page_lines
SELECT last_id, tenant_id, order_key, last_id
FROM order_lines WHERE last_id > ? ORDER BY last_id LIMIT ?;

-- name: adopt_lines
INSERT INTO order_lines (tenant_id, order_key, last_id) VALUES (?, ?, ?) ON CONFLICT DO NOTHING;

-- name: page_schedules
SELECT id,
    id, name, type, kind, tenant_id, payload_template, options, expression, interval_ms, zone,
    misfire, enabled, starts_at, ends_at, expires_at, max_runs, run_count, last_run_at,
    next_run_at, by_operator, created_by, metadata, created_at, updated_at, revision
FROM job_schedules WHERE id > ? ORDER BY id LIMIT ?;

-- name: adopt_schedules
INSERT INTO job_schedules (
    id, name, type, kind, tenant_id, payload_template, options, expression, interval_ms, zone,
    misfire, enabled, starts_at, ends_at, expires_at, max_runs, run_count, last_run_at,
    next_run_at, by_operator, created_by, metadata, created_at, updated_at, revision
) VALUES (
    ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?
) ON CONFLICT DO NOTHING;

-- name: page_pauses
SELECT scope, name,
    scope, name, reason, paused_by, created_at
FROM pauses WHERE (scope, name) > (?, ?) ORDER BY scope, name LIMIT ?;

-- name: adopt_pauses
INSERT INTO pauses (scope, name, reason, paused_by, created_at)
VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: page_limits
SELECT scope, name, kind,
    scope, name, kind, capacity, interval_ms, by_operator, updated_at
FROM limits WHERE (scope, name, kind) > (?, ?, ?) ORDER BY scope, name, kind LIMIT ?;

-- name: adopt_limits
INSERT INTO limits (scope, name, kind, capacity, interval_ms, by_operator, updated_at)
VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: page_rates
SELECT scope, name, scope, name, starts
FROM rate_starts WHERE (scope, name) > (?, ?) ORDER BY scope, name LIMIT ?;

-- name: adopt_rates
INSERT INTO rate_starts (scope, name, starts) VALUES (?, ?, ?) ON CONFLICT DO NOTHING;

-- name: page_breakers
SELECT name,
    name, types, failures, cool_down_ms, failed, opened_at, probe_id, updated_at
FROM breakers WHERE name > ? ORDER BY name LIMIT ?;

-- name: adopt_breakers
INSERT INTO breakers (name, types, failures, cool_down_ms, failed, opened_at, probe_id, updated_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: page_metrics
SELECT resolution_ms, bucket, type, queue, name,
    resolution_ms, bucket, type, queue, name, value
FROM metrics WHERE (resolution_ms, bucket, type, queue, name) > (?, ?, ?, ?, ?)
ORDER BY resolution_ms, bucket, type, queue, name LIMIT ?;

-- name: adopt_metrics
INSERT INTO metrics (resolution_ms, bucket, type, queue, name, value)
VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: page_records
SELECT kind, name,
    kind, name, document, revision, updated_at, expires_at
FROM records WHERE (kind, name) > (?, ?) ORDER BY kind, name LIMIT ?;

-- name: adopt_records
INSERT INTO records (kind, name, document, revision, updated_at, expires_at)
VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: page_audit
SELECT seq,
    seq, at, actor, action, subject, tenant_id, details, previous, hash
FROM audit_log WHERE seq > ? ORDER BY seq LIMIT ?;

-- name: adopt_audit
INSERT INTO audit_log (seq, at, actor, action, subject, tenant_id, details, previous, hash)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: page_followers
SELECT name,
    name, statuses
FROM followers WHERE name > ? ORDER BY name LIMIT ?;

-- name: adopt_followers
INSERT INTO followers (name, statuses) VALUES (?, ?) ON CONFLICT DO NOTHING;

-- name: page_changes
SELECT follower, seq,
    follower, job_id, type, queue, tenant_id, status, fence, at
FROM job_changes WHERE (follower, seq) > (?, ?) ORDER BY follower, seq LIMIT ?;

-- name: adopt_changes
INSERT INTO job_changes (follower, job_id, type, queue, tenant_id, status, fence, at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?);
