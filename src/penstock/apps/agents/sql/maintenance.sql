-- name: any_quota
SELECT 1 FROM agents_quotas LIMIT 1;

-- name: quotas_of
SELECT tenant_id, measure, period, most, warn_at, action, throttle, updated_at
FROM agents_quotas WHERE tenant_id = :tenant OR tenant_id = '*'
ORDER BY tenant_id = '*' DESC, measure;

-- name: quotas
SELECT tenant_id, measure, period, most, warn_at, action, throttle, updated_at
FROM agents_quotas ORDER BY tenant_id, measure;

-- name: set_quota
INSERT INTO agents_quotas (tenant_id, measure, period, most, warn_at, action, throttle, updated_at)
VALUES (:tenant_id, :measure, :period, :most, :warn_at, :action, :throttle, :updated_at)
ON CONFLICT (tenant_id, measure) DO UPDATE SET
    period = excluded.period, most = excluded.most, warn_at = excluded.warn_at,
    action = excluded.action, throttle = excluded.throttle, updated_at = excluded.updated_at;

-- name: remove_quota
DELETE FROM agents_quotas WHERE tenant_id = ? AND measure = ?;

-- name: quota_used
SELECT coalesce(sum(used), 0) FROM agents_usage
WHERE tenant_id = ? AND measure = ? AND period = ?;

-- name: add_usage
INSERT INTO agents_usage (tenant_id, measure, period, slot, used) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (tenant_id, measure, period, slot) DO UPDATE
SET used = agents_usage.used + excluded.used;

-- name: give_usage_back
-- Where it is still counted: of a tenant that was erased meanwhile nothing comes back.
UPDATE agents_usage SET used = used - ?
WHERE tenant_id = ? AND measure = ? AND period = ? AND slot = ?;

-- name: set_usage
INSERT INTO agents_usage (tenant_id, measure, period, slot, used) VALUES (?, ?, ?, 0, ?)
ON CONFLICT (tenant_id, measure, period, slot) DO UPDATE SET used = excluded.used;

-- name: forget_old_usage
-- Of periods whose names are as long as this one, and that ended before it.
DELETE FROM agents_usage WHERE length(period) = length(:before) AND period < :before;

-- name: usage_tenants
SELECT DISTINCT tenant_id FROM agents_usage;

-- name: standing_tenants
SELECT DISTINCT tenant_id FROM agents_standings;

-- name: standing
SELECT period, state, limited FROM agents_standings WHERE tenant_id = ? AND measure = ?;

-- name: set_standing
INSERT INTO agents_standings (tenant_id, measure, period, state, used, limited, changed_at)
VALUES (:tenant_id, :measure, :period, :state, :used, :limited, :changed_at)
ON CONFLICT (tenant_id, measure) DO UPDATE SET
    period = excluded.period, state = excluded.state, used = excluded.used,
    limited = excluded.limited, changed_at = excluded.changed_at;

-- name: standing_used
UPDATE agents_standings SET used = ? WHERE tenant_id = ? AND measure = ?;

-- name: mark_limited
UPDATE agents_standings SET limited = ? WHERE tenant_id = ? AND measure = ?;

-- name: throttled_besides
SELECT measure FROM agents_standings
WHERE tenant_id = ? AND state = 'throttled' AND limited = 0 ORDER BY measure LIMIT 1;

-- name: standings
SELECT tenant_id, measure, state, used FROM agents_standings
WHERE state <> 'open' ORDER BY tenant_id, measure LIMIT ?;

-- name: forget_standing
DELETE FROM agents_standings WHERE tenant_id = ? AND measure = ?;

-- name: add_reservation
INSERT INTO agents_reservations (id, tenant_id, amounts, created_at) VALUES (?, ?, ?, ?);

-- name: take_reservation
DELETE FROM agents_reservations WHERE id = ? RETURNING amounts;

-- name: hold_reservation
-- Locks it, and tells what it was for.
UPDATE agents_reservations SET created_at = created_at WHERE id = ? RETURNING amounts;

-- name: give_reservation_back
UPDATE agents_reservations SET amounts = '{}' WHERE id = ?;

-- name: forget_reservations
DELETE FROM agents_reservations WHERE created_at < ? AND amounts = '{}';

-- name: lost_reservations
SELECT id, tenant_id FROM agents_reservations
WHERE created_at < :before AND amounts <> '{}' AND (CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant)
ORDER BY created_at LIMIT :limit;

-- name: begin_export
INSERT INTO agents_exports (id, tenant_id, user_id, kind, file, contents, status, created_at)
VALUES (?, ?, ?, ?, ?, '{}', 'running', ?)
ON CONFLICT (id) DO NOTHING;

-- name: end_export
UPDATE agents_exports
SET sha256 = :sha256, bytes = :bytes, contents = :contents, status = 'done', ended_at = :ended_at
WHERE id = :id AND status <> 'done';

-- name: export_by_id
SELECT id, tenant_id, user_id, kind, file, sha256, bytes, contents, status, created_at, ended_at
FROM agents_exports WHERE id = ?;

-- name: exports
SELECT id, tenant_id, user_id, kind, file, sha256, bytes, contents, status, created_at, ended_at
FROM agents_exports
WHERE (CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant)
ORDER BY created_at DESC, id DESC LIMIT :limit;

-- name: exports_holding
SELECT id, file FROM agents_exports
WHERE (kind = 'data'
        AND (CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant OR tenant_id = '')
        AND (CAST(:person AS TEXT) IS NULL OR user_id IS NULL OR user_id = :person))
    OR (kind = 'audit' AND CAST(:person AS TEXT) IS NULL AND tenant_id = :tenant)
ORDER BY id LIMIT :limit;

-- name: bytes_of_files
SELECT tenant_id, sum(bytes) FROM (
    SELECT tenant_id, bytes FROM agents_exports UNION ALL SELECT tenant_id, bytes FROM agents_archives
) AS files
WHERE bytes IS NOT NULL AND (CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant)
GROUP BY 1;

-- name: forget_export
DELETE FROM agents_exports WHERE id = ?;

-- name: request_deletion
INSERT INTO agents_deletions (id, subject, subject_hash, jobs, status, created_at)
VALUES (?, ?, ?, ?, 'requested', ?)
ON CONFLICT (id) DO NOTHING;

-- name: deletion
SELECT id, subject, subject_hash, jobs, found, status, certificate, created_at, ended_at
FROM agents_deletions WHERE id = ?;

-- name: deletions
SELECT id, subject, subject_hash, jobs, found, status, certificate, created_at, ended_at
FROM agents_deletions ORDER BY created_at DESC, id DESC LIMIT ?;

-- name: deletion_found
UPDATE agents_deletions SET found = ?, status = 'erasing' WHERE id = ? AND found IS NULL;

-- name: deletion_done
UPDATE agents_deletions
SET subject = NULL, jobs = '[]', status = 'done', certificate = ?, ended_at = ?
WHERE id = ? AND status <> 'done';

-- name: archived_files
SELECT file FROM agents_archives
WHERE state = 'whole' AND (CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant) ORDER BY id;

-- name: erase_deliveries_about
-- Of the webhooks that a person owns.
DELETE FROM agents_webhook_deliveries WHERE webhook_id IN (
    SELECT id FROM agents_webhooks
    WHERE owner = :person AND (CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant));

-- name: erase_subscriptions_about
DELETE FROM agents_subscriptions WHERE webhook_id IN (
    SELECT id FROM agents_webhooks
    WHERE owner = :person AND (CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant));

-- name: erase_classifiers_about
-- What was learned from a person's trajectories; the next training makes it anew without them.
DELETE FROM agents_classifiers WHERE tenant_id IN (
    SELECT tenant_id FROM agents_trajectories
    WHERE user_id = :person AND (CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant));
