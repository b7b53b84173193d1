-- Queueing what has fallen due.

CREATE OR REPLACE FUNCTION {schema}.due_in(p_now bigint) RETURNS bigint
LANGUAGE sql STABLE
RETURN (SELECT {schema}.ms(min(scheduled_at)) - p_now FROM {schema}.jobs_live
    WHERE status IN ({from stage}) AND waiting_on = 0);
COMMENT ON FUNCTION {schema}.due_in
    IS 'Milliseconds until the next waiting job falls due; not above 0 if one has.';

CREATE OR REPLACE FUNCTION {schema}.stage_due(p_now bigint, p_limit integer) RETURNS integer
LANGUAGE plpgsql
-- The plans are made once, perhaps while the tables are empty, and must still do when they are not.
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    v_now timestamptz := {schema}.at(p_now);
    v_staged integer;
BEGIN
    -- A job with an order key joins its line first, which the caller sees to; `queued_at` says
    -- whether it has. One that has expired is not queued any more.
    WITH due AS MATERIALIZED (
        SELECT id FROM {schema}.jobs_live
        WHERE status IN ({from stage}) AND waiting_on = 0 AND scheduled_at <= v_now
          AND (order_key IS NULL OR queued_at IS NOT NULL)
          AND (expires_at IS NULL OR expires_at > v_now)
        ORDER BY scheduled_at LIMIT p_limit
        FOR UPDATE SKIP LOCKED
    )
    UPDATE {schema}.jobs_live AS jobs
    SET status = 'queued', queued_at = v_now, updated_at = v_now,
        rank = {schema}.ms(scheduled_at) + (priority - 1) * 3600000::bigint
    FROM due WHERE jobs.id = due.id;
    GET DIAGNOSTICS v_staged = ROW_COUNT;
    RETURN v_staged;
END
$$;
COMMENT ON FUNCTION {schema}.stage_due
    IS 'Queues waiting jobs that fell due, those first that did so first; how many they were.';
