-- name: insert_job
INSERT INTO jobs (
    id, type, queue, tenant_id, status, rank, priority, max_retries, timeout_ms, scheduled_at,
    created_at, updated_at, queued_at, waiting_on, expires_at, retry_delay_ms, backoff_multiplier, category,
    workspace_id, created_by, parent_job_id, schedule_id, key, key_scope, limit_key, order_key,
    tags, metadata, keep_completed, keep_failed, trace_context, payload
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO NOTHING;

-- name: known_id
SELECT id FROM jobs WHERE id = ?;

-- name: key_holder
SELECT job_id FROM job_keys
WHERE tenant_id = ? AND type = ? AND key = ? AND (expires_at IS NULL OR expires_at > ?);

-- name: take_key
-- Answers with the holder, whoever that is; a key past its time is anybody's.
INSERT INTO job_keys AS old (tenant_id, type, key, job_id, scope, expires_at)
VALUES (:tenant_id, :type, :key, :job_id, :scope, :expires_at)
ON CONFLICT (tenant_id, type, key) DO UPDATE
SET job_id = iif(old.expires_at <= :now, excluded.job_id, old.job_id),
    scope = iif(old.expires_at <= :now, excluded.scope, old.scope),
    expires_at = iif(old.expires_at <= :now, excluded.expires_at, old.expires_at)
RETURNING job_id;

-- name: release_keys_at_claim
DELETE FROM job_keys
WHERE job_id IN (SELECT value FROM json_each(?)) AND scope = 'while_pending';

-- name: any_key
SELECT 1 FROM job_keys LIMIT 1;

-- name: release_keys_at_end
DELETE FROM job_keys
WHERE job_id IN (SELECT value FROM json_each(?)) AND scope IN ('while_pending', 'until_done');
