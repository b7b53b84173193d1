-- Questions for people and their tools; penstock itself asks none of them.

CREATE OR REPLACE FUNCTION {schema}.get_ready_jobs(
    p_limit integer DEFAULT 10, p_job_types text[] DEFAULT NULL, p_now timestamptz DEFAULT NULL
) RETURNS TABLE (job_id text, job_type text, priority integer, payload json)
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT jobs.id, jobs.type, jobs.priority::integer, jobs.payload
    FROM {schema}.jobs_live AS jobs, coalesce(p_now, statement_timestamp()) AS now
    WHERE (jobs.status IN ({from claim})
            OR (jobs.status IN ({from stage}) AND jobs.waiting_on = 0
                AND jobs.scheduled_at <= now))
        AND (p_job_types IS NULL OR jobs.type = ANY(p_job_types))
        AND (jobs.expires_at IS NULL OR jobs.expires_at > now)
        AND NOT EXISTS (
            SELECT 1 FROM {schema}.pauses
            WHERE (pauses.scope, pauses.name) IN
                (('queue', jobs.queue), ('type', jobs.type), ('tenant', jobs.tenant_id)))
    -- What is not queued yet gets the rank that staging will give it.
    ORDER BY CASE WHEN jobs.status IN ({from claim}) THEN jobs.rank
        ELSE {schema}.ms(jobs.scheduled_at) + (jobs.priority - 1) * 3600000 END, jobs.seq
    LIMIT p_limit;
END;
COMMENT ON FUNCTION {schema}.get_ready_jobs
    IS 'Jobs that a worker could run now, the most urgent first: a look, which claims nothing.';

CREATE OR REPLACE FUNCTION {schema}.check_dependencies_satisfied(p_job_id text) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT NOT EXISTS (
        SELECT 1 FROM {schema}.job_dependencies AS edge
        WHERE edge.child_id = jobs.id AND edge.outcome IS DISTINCT FROM 'satisfied')
    FROM {schema}.jobs WHERE jobs.id = p_job_id;
END;
COMMENT ON FUNCTION {schema}.check_dependencies_satisfied
    IS 'Whether every job that this one waited for let it run; nothing for an unknown job.';

CREATE OR REPLACE FUNCTION {schema}.get_job_statistics(
    p_tenant_id text DEFAULT NULL, p_time_window interval DEFAULT '24 hours',
    p_now timestamptz DEFAULT NULL
) RETURNS TABLE (
    total_jobs bigint, pending_jobs bigint, queued_jobs bigint, in_progress_jobs bigint,
    failed_jobs bigint, paused_jobs bigint, completed_jobs bigint, cancelled_jobs bigint,
    dead_letter_jobs bigint, avg_duration_ms double precision
)
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT count(*),
        count(*) FILTER (WHERE status = 'pending'), count(*) FILTER (WHERE status = 'queued'),
        count(*) FILTER (WHERE status = 'in_progress'), count(*) FILTER (WHERE status = 'failed'),
        count(*) FILTER (WHERE status = 'paused'), count(*) FILTER (WHERE status = 'completed'),
        count(*) FILTER (WHERE status = 'cancelled'),
        count(*) FILTER (WHERE status = 'dead_letter'),
        avg({schema}.ms(completed_at) - {schema}.ms(started_at))
            FILTER (WHERE status = 'completed')::double precision
    FROM (
        SELECT status, tenant_id, started_at, completed_at FROM {schema}.jobs_live
        UNION ALL
        SELECT status, tenant_id, started_at, completed_at FROM {schema}.jobs_ended
        WHERE status IN ('completed', 'cancelled', 'dead_letter')
            AND completed_at >= coalesce(p_now, statement_timestamp()) - p_time_window
    ) AS counted
    WHERE p_tenant_id IS NULL OR tenant_id = p_tenant_id;
END;
COMMENT ON FUNCTION {schema}.get_job_statistics
    IS 'How many jobs live now and how many ended within the window, by status.';
