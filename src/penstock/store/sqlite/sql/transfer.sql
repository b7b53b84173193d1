-- Pages of records, and how they are adopted, are made from the columns in contract/transfer.py.

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
