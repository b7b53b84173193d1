-- name: put_schedule
INSERT INTO job_schedules (
    id, name, type, kind, tenant_id, payload_template, options, expression, interval_ms, zone,
    misfire, enabled, starts_at, ends_at, expires_at, max_runs, next_run_at, by_operator,
    created_by, metadata, created_at, updated_at
) VALUES (
    :id, :name, :type, :kind, :tenant_id, :payload::json, :options::json, :expression,
    :interval_ms, :zone, :misfire, :enabled, at(:starts_at), at(:ends_at), at(:expires_at),
    :max_runs, at(:next_run_at), :by_operator, :created_by, :metadata::json, at(:now), at(:now)
)
ON CONFLICT (tenant_id, name) DO UPDATE
SET type = excluded.type, kind = excluded.kind, payload_template = excluded.payload_template,
    options = excluded.options, expression = excluded.expression,
    interval_ms = excluded.interval_ms, zone = excluded.zone, misfire = excluded.misfire,
    enabled = excluded.enabled, starts_at = excluded.starts_at, ends_at = excluded.ends_at,
    expires_at = excluded.expires_at, max_runs = excluded.max_runs,
    next_run_at = excluded.next_run_at, by_operator = excluded.by_operator,
    created_by = excluded.created_by, metadata = excluded.metadata,
    updated_at = excluded.updated_at, revision = job_schedules.revision + 1;

-- name: schedule
SELECT id, name, type, kind, tenant_id, payload_template::text, options::text, expression,
    interval_ms, zone, misfire, enabled, ms(starts_at), ms(ends_at), ms(expires_at), max_runs,
    run_count, ms(last_run_at), ms(next_run_at), by_operator, created_by, metadata::text,
    ms(created_at), ms(updated_at), revision
FROM job_schedules WHERE tenant_id = ? AND name = ?;

-- name: schedules
SELECT id, name, type, kind, tenant_id, payload_template::text, options::text, expression,
    interval_ms, zone, misfire, enabled, ms(starts_at), ms(ends_at), ms(expires_at), max_runs,
    run_count, ms(last_run_at), ms(next_run_at), by_operator, created_by, metadata::text,
    ms(created_at), ms(updated_at), revision
FROM job_schedules WHERE (:tenant_id::text IS NULL OR tenant_id = :tenant_id)
ORDER BY name, tenant_id LIMIT :limit;

-- name: due_schedules
SELECT id, name, type, kind, tenant_id, payload_template::text, options::text, expression,
    interval_ms, zone, misfire, enabled, ms(starts_at), ms(ends_at), ms(expires_at), max_runs,
    run_count, ms(last_run_at), ms(next_run_at), by_operator, created_by, metadata::text,
    ms(created_at), ms(updated_at), revision
FROM job_schedules
WHERE enabled AND next_run_at IS NOT NULL AND next_run_at <= at(:now)
  AND (expires_at IS NULL OR expires_at > at(:now))
ORDER BY next_run_at LIMIT :limit;

-- name: next_schedule
SELECT ms(next_run_at) FROM job_schedules
WHERE enabled AND next_run_at IS NOT NULL AND next_run_at > at(?)
ORDER BY next_run_at LIMIT 1;

-- name: advance_schedule
UPDATE job_schedules
SET next_run_at = at(:next_run_at), last_run_at = coalesce(at(:last_run_at), last_run_at),
    revision = revision + 1, updated_at = at(:now)
WHERE id = :id AND revision = :revision AND enabled;

-- name: count_schedule_runs
UPDATE job_schedules SET run_count = run_count + ? WHERE id = ?;

-- name: pause_schedule
UPDATE job_schedules SET enabled = false, revision = revision + 1, updated_at = at(:now)
WHERE tenant_id = :tenant_id AND name = :name AND enabled
  AND (:revision::bigint IS NULL OR revision = :revision);

-- name: resume_schedule
UPDATE job_schedules
SET enabled = true, next_run_at = at(:next_run_at), revision = revision + 1, updated_at = at(:now)
WHERE id = :id AND revision = :revision AND NOT enabled;

-- name: delete_schedule
DELETE FROM job_schedules WHERE tenant_id = ? AND name = ?;

-- name: any_expired_schedule
SELECT 1 FROM job_schedules WHERE expires_at IS NOT NULL AND expires_at <= at(?) LIMIT 1;

-- name: delete_expired_schedules
DELETE FROM job_schedules WHERE expires_at IS NOT NULL AND expires_at <= at(?);
