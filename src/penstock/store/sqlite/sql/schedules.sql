-- name: put_schedule
INSERT INTO job_schedules (
    id, name, type, kind, tenant_id, payload_template, options, expression, interval_ms, zone,
    misfire, enabled, starts_at, ends_at, expires_at, max_runs, next_run_at, by_operator,
    created_by, metadata, created_at, updated_at
) VALUES (
    :id, :name, :type, :kind, :tenant_id, :payload, :options, :expression, :interval_ms, :zone,
    :misfire, :enabled, :starts_at, :ends_at, :expires_at, :max_runs, :next_run_at, :by_operator,
    :created_by, :metadata, :now, :now
)
ON CONFLICT (tenant_id, name) DO UPDATE
SET type = excluded.type, kind = excluded.kind, payload_template = excluded.payload_template,
    options = excluded.options, expression = excluded.expression,
    interval_ms = excluded.interval_ms, zone = excluded.zone, misfire = excluded.misfire,
    enabled = excluded.enabled, starts_at = excluded.starts_at, ends_at = excluded.ends_at,
    expires_at = excluded.expires_at, max_runs = excluded.max_runs,
    next_run_at = excluded.next_run_at, by_operator = excluded.by_operator,
    created_by = excluded.created_by, metadata = excluded.metadata,
    updated_at = excluded.updated_at, revision = revision + 1;

-- name: schedule
SELECT id, name, type, kind, tenant_id, CAST(payload_template AS BLOB), CAST(options AS BLOB),
    expression, interval_ms, zone, misfire, enabled, starts_at, ends_at, expires_at, max_runs,
    run_count, last_run_at, next_run_at, by_operator, created_by, metadata, created_at, updated_at,
    revision
FROM job_schedules WHERE tenant_id = ? AND name = ?;

-- name: schedules
SELECT id, name, type, kind, tenant_id, CAST(payload_template AS BLOB), CAST(options AS BLOB),
    expression, interval_ms, zone, misfire, enabled, starts_at, ends_at, expires_at, max_runs,
    run_count, last_run_at, next_run_at, by_operator, created_by, metadata, created_at, updated_at,
    revision
FROM job_schedules WHERE (:tenant_id IS NULL OR tenant_id = :tenant_id)
ORDER BY name, tenant_id LIMIT :limit;

-- name: due_schedules
SELECT id, name, type, kind, tenant_id, CAST(payload_template AS BLOB), CAST(options AS BLOB),
    expression, interval_ms, zone, misfire, enabled, starts_at, ends_at, expires_at, max_runs,
    run_count, last_run_at, next_run_at, by_operator, created_by, metadata, created_at, updated_at,
    revision
FROM job_schedules
WHERE enabled = 1 AND next_run_at IS NOT NULL AND next_run_at <= :now
  AND (expires_at IS NULL OR expires_at > :now)
ORDER BY next_run_at LIMIT :limit;

-- name: next_schedule
SELECT next_run_at FROM job_schedules
WHERE enabled = 1 AND next_run_at IS NOT NULL AND next_run_at > ?
ORDER BY next_run_at LIMIT 1;

-- name: advance_schedule
UPDATE job_schedules
SET next_run_at = :next_run_at, last_run_at = coalesce(:last_run_at, last_run_at),
    revision = revision + 1, updated_at = :now
WHERE id = :id AND revision = :revision AND enabled = 1;

-- name: count_schedule_runs
UPDATE job_schedules SET run_count = run_count + ? WHERE id = ?;

-- name: pause_schedule
UPDATE job_schedules SET enabled = 0, revision = revision + 1, updated_at = :now
WHERE tenant_id = :tenant_id AND name = :name AND enabled = 1
  AND (:revision IS NULL OR revision = :revision);

-- name: resume_schedule
UPDATE job_schedules
SET enabled = 1, next_run_at = :next_run_at, revision = revision + 1, updated_at = :now
WHERE id = :id AND revision = :revision AND enabled = 0;

-- name: delete_schedule
DELETE FROM job_schedules WHERE tenant_id = ? AND name = ?;

-- name: any_expired_schedule
SELECT 1 FROM job_schedules WHERE expires_at IS NOT NULL AND expires_at <= ? LIMIT 1;

-- name: delete_expired_schedules
DELETE FROM job_schedules WHERE expires_at IS NOT NULL AND expires_at <= ?;
