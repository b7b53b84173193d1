-- name: renew
UPDATE jobs SET lease_until = ?
WHERE id = ? AND fence = ? AND lease_owner = ? AND status = 'in_progress';

-- name: renew_unheard
UPDATE jobs SET lease_until = max(lease_until, ?)
WHERE lease_owner = ? AND status = 'in_progress' AND id NOT IN (SELECT value FROM json_each(?));

-- name: cancel_requests
SELECT id FROM jobs
WHERE lease_owner = ? AND status = 'in_progress' AND cancel_requested_at IS NOT NULL;

-- name: held
SELECT id FROM jobs WHERE lease_owner = ? AND status = 'in_progress';
