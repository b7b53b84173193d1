-- Functions for queries, ours and yours. Those in plain SQL become part of the query that calls them.

CREATE FUNCTION {schema}.ms(moment timestamptz) RETURNS bigint
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
-- By way of UTC, because the epoch of a timestamptz counts as dependent on the time zone.
RETURN (date_part('epoch', moment AT TIME ZONE 'UTC') * 1000)::bigint;
COMMENT ON FUNCTION {schema}.ms IS 'A time as UTC milliseconds, as the rest of penstock has it.';

CREATE FUNCTION {schema}.at(ms bigint) RETURNS timestamptz
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN to_timestamp(ms / 1000::double precision);
COMMENT ON FUNCTION {schema}.at IS 'The time that UTC milliseconds stand for.';

-- jsonb refuses what json holds: a NUL, half a surrogate pair, a number of thousands of digits, a
-- document nested thousands deep. An index over it must not keep such a job from being enqueued.
-- Not in plain SQL, which could not be made part of a query here and takes twice as long.
CREATE FUNCTION {schema}.searchable(document json) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    written CONSTANT text := document::text;
BEGIN
    RETURN CASE
        WHEN strpos(written, '\u') > 0 AND regexp_replace(
                -- Without escaped backslashes and whole pairs, what is left of a pair is a half.
                replace(written, '\\', '__'),
                '\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}', '_', 'g'
            ) ~ '\\u(0000|[dD][89a-fA-F])' THEN NULL
        WHEN written ~ '(^|[[:space:]:,[])-?[0-9.]+[eE][+-]?[0-9]{5}' THEN NULL
        WHEN octet_length(written) > 8000 AND (written ~ '[0-9]{250}'
            OR length(written) - length(translate(written, '[{', '')) > 4000) THEN NULL
        ELSE written::jsonb
    END;
END
$$;
COMMENT ON FUNCTION {schema}.searchable
    IS 'A document as jsonb, for searching in it; nothing for one that jsonb cannot hold.';

-- Over ended jobs only: over living ones it would double the cost of an enqueue and of a claim.
CREATE INDEX jobs_ended_payload ON {schema}.jobs_ended
    USING gin ({schema}.searchable(payload) jsonb_path_ops);

CREATE FUNCTION {schema}.tenant() RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
-- A setting made by SET LOCAL is empty, and not unset, once its transaction is over.
RETURN nullif(current_setting('penstock.tenant', true), '');
COMMENT ON FUNCTION {schema}.tenant IS 'The tenant this transaction works for, if it is bound to one.';

-- With its owner's eyes, because ids are unique within the living and within the ended jobs only:
-- a tenant that cannot see an ended job could give a living one its id, and so come by its history.
CREATE FUNCTION {schema}.is_foreign(job_id text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT EXISTS (SELECT 1 FROM {schema}.jobs
        WHERE jobs.id = job_id AND jobs.tenant_id IS DISTINCT FROM {schema}.tenant());
END;
COMMENT ON FUNCTION {schema}.is_foreign IS 'Whether another tenant has a job of this id.';
REVOKE EXECUTE ON FUNCTION {schema}.is_foreign FROM PUBLIC;

-- Whatever else a roll-up would fail at, and with it the figures of everybody.
CREATE FUNCTION {schema}.counts_own(sums jsonb, tenant text) RETURNS boolean
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN jsonb_typeof(sums) = 'array' AND NOT EXISTS (
    SELECT 1 FROM jsonb_array_elements(CASE jsonb_typeof(sums) WHEN 'array' THEN sums END) AS one
    WHERE (jsonb_typeof(one) = 'array' AND jsonb_typeof(one -> 0) = 'string'
        AND jsonb_typeof(one -> 1) = 'string' AND jsonb_typeof(one -> 2) = 'string'
        AND CASE jsonb_typeof(one -> 3) WHEN 'number'
            THEN (one ->> 3)::numeric BETWEEN 0 AND 1e15 ELSE false END
        AND (strpos(one ->> 2, '@') = 0
            OR substr(one ->> 2, strpos(one ->> 2, '@') + 1) = tenant)) IS NOT TRUE);
COMMENT ON FUNCTION {schema}.counts_own
    IS 'Whether sums are lists of type, queue, name and count, and name no other tenant.';

CREATE FUNCTION {schema}.get_ready_jobs(
    p_limit integer DEFAULT 10, p_job_types text[] DEFAULT NULL, p_now timestamptz DEFAULT NULL
) RETURNS TABLE (job_id text, job_type text, priority integer, payload json)
LANGUAGE sql STABLE PARALLEL SAFE
BEGIN ATOMIC
    SELECT jobs.id, jobs.type, jobs.priority::integer, jobs.payload
    FROM {schema}.jobs_live AS jobs, coalesce(p_now, statement_timestamp()) AS now
    WHERE (jobs.status = 'queued'
            OR (jobs.status IN ('pending', 'failed') AND jobs.waiting_on = 0
                AND jobs.scheduled_at <= now))
        AND (p_job_types IS NULL OR jobs.type = ANY(p_job_types))
        AND (jobs.expires_at IS NULL OR jobs.expires_at > now)
        AND NOT EXISTS (
            SELECT 1 FROM {schema}.pauses
            WHERE (pauses.scope, pauses.name) IN
                (('queue', jobs.queue), ('type', jobs.type), ('tenant', jobs.tenant_id)))
    -- What is not queued yet gets the rank that staging will give it.
    ORDER BY CASE WHEN jobs.status = 'queued' THEN jobs.rank
        ELSE {schema}.ms(jobs.scheduled_at) + (jobs.priority - 1) * 3600000 END, jobs.seq
    LIMIT p_limit;
END;
COMMENT ON FUNCTION {schema}.get_ready_jobs
    IS 'Jobs that a worker could run now, the most urgent first: a look, which claims nothing.';

CREATE FUNCTION {schema}.check_dependencies_satisfied(p_job_id text) RETURNS boolean
LANGUAGE sql STABLE STRICT PARALLEL SAFE
BEGIN ATOMIC
    SELECT NOT EXISTS (
        SELECT 1 FROM {schema}.job_dependencies AS edge
        WHERE edge.child_id = jobs.id AND edge.outcome IS DISTINCT FROM 'satisfied')
    FROM {schema}.jobs WHERE jobs.id = p_job_id;
END;
COMMENT ON FUNCTION {schema}.check_dependencies_satisfied
    IS 'Whether every job that this one waited for let it run; nothing for an unknown job.';

CREATE FUNCTION {schema}.get_job_statistics(
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
