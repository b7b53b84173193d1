-- Ending executions that returned, in one round trip.

CREATE OR REPLACE FUNCTION {schema}.complete_all(p_ended jsonb, p_owner text, p_sums jsonb, p_now bigint)
RETURNS text
LANGUAGE plpgsql
-- The plans are made once, perhaps while the tables are empty, and must still do when they are not.
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    v_now timestamptz := {schema}.at(p_now);
    v_given integer;
    v_done text[];
    v_keyed text[];
    v_ordered boolean;
BEGIN
    WITH ended AS MATERIALIZED (
        SELECT value ->> 0 AS id, (value ->> 1)::bigint AS fence, (value ->> 2)::json AS result,
            {schema}.at((value ->> 3)::bigint) AS started_at, (value ->> 4)::bigint AS wait_ms,
            (value ->> 5)::bigint AS duration_ms, (value ->> 6)::bigint AS cpu_ms,
            (value ->> 7)::bigint AS memory_kb
        FROM jsonb_array_elements(p_ended)
    ),
    -- An update and not a deletion and an insertion: whoever waits for such a row is told that it
    -- moved, and asks again.
    gone AS (
        UPDATE {schema}.jobs
        SET live = false, status = 'completed', attempts = attempts + 1, result = ended.result,
            error = NULL, error_details = NULL, started_at = ended.started_at,
            completed_at = v_now, updated_at = v_now, lease_owner = NULL, lease_until = NULL,
            cancel_requested_at = NULL, cancel_reason = NULL
        FROM ended
        WHERE jobs.live AND jobs.id = ended.id AND jobs.fence = ended.fence
          -- By their ids, one by one: the index of the owner's leases would be walked for each.
          AND jobs.lease_owner || '' = p_owner AND jobs.status || '' IN ({from complete})
        RETURNING jobs.id, jobs.key, jobs.order_key, ended.fence, ended.result, ended.started_at,
            ended.wait_ms, ended.duration_ms, ended.cpu_ms, ended.memory_kb
    ),
    history AS (
        INSERT INTO {schema}.job_executions (job_id, fence, status, started_at, ended_at, wait_ms,
            duration_ms, cpu_ms, memory_kb, worker, result)
        SELECT id, fence, 'completed', started_at, v_now, wait_ms, duration_ms, cpu_ms, memory_kb,
            p_owner, result
        FROM gone
        ON CONFLICT (job_id, fence) DO NOTHING
    )
    SELECT (SELECT count(*) FROM ended), array_agg(id), array_agg(id) FILTER (WHERE key IS NOT NULL),
        bool_or(order_key IS NOT NULL)
    INTO v_given, v_done, v_keyed, v_ordered
    FROM gone;

    IF v_keyed IS NOT NULL THEN
        DELETE FROM {schema}.job_keys
        WHERE job_id = ANY(v_keyed) AND scope IN ('while_pending', 'until_done');
    END IF;
    IF v_given = coalesce(cardinality(v_done), 0) AND p_sums IS NOT NULL THEN
        INSERT INTO {schema}.metric_deltas (bucket, sums) VALUES (p_now / 10000 * 10000, p_sums);
    END IF;
    -- A statement of its own, after the jobs have ended: an edge that was added meanwhile is seen.
    RETURN json_build_object('done', coalesce(to_json(v_done), '[]'::json),
        'follows', coalesce(v_ordered, false) OR EXISTS (
            SELECT FROM {schema}.job_dependencies
            WHERE parent_id = ANY(v_done) AND outcome IS NULL),
        'guarded', EXISTS (SELECT FROM {schema}.breakers));
END
$$;
COMMENT ON FUNCTION {schema}.complete_all
    IS 'Ends executions that returned, where the fence still holds, and says what else must be done.';
