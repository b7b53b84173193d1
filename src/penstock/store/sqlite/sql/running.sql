-- name: running_ids
-- Those that started first come first; prefetched ones, which have not started, last.
SELECT id FROM jobs INDEXED BY jobs_leased WHERE status = 'in_progress'
ORDER BY started_at IS NULL, started_at, seq LIMIT ?;
