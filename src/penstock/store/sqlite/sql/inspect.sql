-- name: leases_without_owner
SELECT count(*) FROM jobs
WHERE status = 'in_progress' AND (lease_owner IS NULL OR lease_until IS NULL);

-- name: keys_without_job
SELECT count(*) FROM job_keys
WHERE scope IN ('while_pending', 'until_done') AND NOT EXISTS (
    SELECT 1 FROM jobs WHERE jobs.id = job_keys.job_id
      AND status NOT IN ('completed', 'cancelled', 'dead_letter')
);
