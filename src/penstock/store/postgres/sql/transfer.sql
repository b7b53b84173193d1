-- Pages of records, and how they are adopted, are made from the columns in contract/transfer.py.

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
