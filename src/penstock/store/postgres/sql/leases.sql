-- name: renew
UPDATE jobs_live SET lease_until = at(?)
WHERE id = ? AND fence = ? AND lease_owner = ? AND status = 'in_progress';

-- name: renew_unheard
UPDATE jobs_live SET lease_until = greatest(lease_until, at(?))
WHERE lease_owner = ? AND status = 'in_progress' AND id <> ALL(?::text[]);

-- name: cancel_requests
SELECT id FROM jobs_live
WHERE lease_owner = ? AND status = 'in_progress' AND cancel_requested_at IS NOT NULL;

-- name: held
SELECT id FROM jobs_live WHERE lease_owner = ? AND status = 'in_progress';
