-- What is ready to be claimed, for a window on it that is kept elsewhere.

CREATE FUNCTION {schema}.ready(p_lanes integer, p_jobs integer)
RETURNS TABLE (
    queue text, tenant_id text, type text, limit_key text, priority integer,
    ranks bigint[], ids text[])
LANGUAGE plpgsql STABLE
-- The plans are made once, perhaps while the tables are empty, and must still do when they are not.
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY WITH RECURSIVE lane AS (
        (SELECT queue, tenant_id, type, limit_key, priority FROM {schema}.jobs_live
         WHERE status = 'queued'
         ORDER BY queue, tenant_id, type, limit_key, priority LIMIT 1)
        UNION ALL
        SELECT following.* FROM lane CROSS JOIN LATERAL (
            SELECT jobs.queue, jobs.tenant_id, jobs.type, jobs.limit_key, jobs.priority
            FROM {schema}.jobs_live AS jobs
            WHERE jobs.status = 'queued'
              AND (jobs.queue, jobs.tenant_id, jobs.type, jobs.limit_key, jobs.priority)
                > (lane.queue, lane.tenant_id, lane.type, lane.limit_key, lane.priority)
            ORDER BY jobs.queue, jobs.tenant_id, jobs.type, jobs.limit_key, jobs.priority LIMIT 1
        ) AS following
    ),
    visited AS (SELECT * FROM lane LIMIT p_lanes)
    SELECT visited.queue, visited.tenant_id, visited.type, visited.limit_key,
        visited.priority::integer, found.ranks, found.ids
    FROM visited CROSS JOIN LATERAL (
        SELECT array_agg(first.rank ORDER BY first.rank, first.seq) AS ranks,
            array_agg(first.id ORDER BY first.rank, first.seq) AS ids
        FROM (
            SELECT jobs.rank, jobs.seq, jobs.id FROM {schema}.jobs_live AS jobs
            WHERE jobs.status = 'queued' AND jobs.queue = visited.queue
              AND jobs.tenant_id = visited.tenant_id AND jobs.type = visited.type
              AND jobs.limit_key = visited.limit_key AND jobs.priority = visited.priority
            ORDER BY jobs.rank, jobs.seq LIMIT p_jobs
        ) AS first
    ) AS found
    WHERE found.ids IS NOT NULL;
END
$$;
COMMENT ON FUNCTION {schema}.ready IS 'The first jobs of every lane, up to so many lanes and jobs.';
