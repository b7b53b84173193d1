-- name: leases_without_owner
SELECT count(*) FROM jobs_live
WHERE status = 'in_progress' AND (lease_owner IS NULL OR lease_until IS NULL);

-- name: keys_without_job
SELECT count(*) FROM job_keys
WHERE scope IN ('while_pending', 'until_done')
  AND NOT EXISTS (SELECT 1 FROM jobs_live WHERE jobs_live.id = job_keys.job_id);
