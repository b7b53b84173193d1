-- Leasing jobs in one round trip, with plans kept by the session.

CREATE OR REPLACE FUNCTION {schema}.lanes_after(
    p_walked_to json, p_types text[], p_queues text[], p_max_priority integer,
    OUT lanes {schema}.lane[], OUT walked_to json)
LANGUAGE plpgsql AS $$
BEGIN
    -- One step per lane, past all jobs of the one before. Where there are too many, each walk goes
    -- on from the last one's end, and round to it.
    WITH RECURSIVE lane AS (
        SELECT coalesce(p_walked_to ->> 0, '') COLLATE "C" AS queue,
            coalesce(p_walked_to ->> 1, '') COLLATE "C" AS tenant_id,
            coalesce(p_walked_to ->> 2, '') COLLATE "C" AS type,
            coalesce(p_walked_to ->> 3, '') COLLATE "C" AS limit_key,
            coalesce(p_walked_to ->> 4, '0')::smallint AS priority, p_walked_to IS NULL AS went_round
        UNION ALL
        SELECT following.* FROM lane CROSS JOIN LATERAL (
            (SELECT jobs.queue, jobs.tenant_id, jobs.type, jobs.limit_key, jobs.priority,
                lane.went_round
             FROM {schema}.jobs_live AS jobs
             WHERE jobs.status IN ({from claim})
               AND (jobs.queue, jobs.tenant_id, jobs.type, jobs.limit_key, jobs.priority)
                > (lane.queue, lane.tenant_id, lane.type, lane.limit_key, lane.priority)
             ORDER BY jobs.queue, jobs.tenant_id, jobs.type, jobs.limit_key, jobs.priority LIMIT 1)
            UNION ALL
            (SELECT jobs.queue, jobs.tenant_id, jobs.type, jobs.limit_key, jobs.priority, true
             FROM {schema}.jobs_live AS jobs
             WHERE jobs.status IN ({from claim}) AND NOT lane.went_round
             ORDER BY jobs.queue, jobs.tenant_id, jobs.type, jobs.limit_key, jobs.priority LIMIT 1)
            LIMIT 1
        ) AS following
        WHERE p_walked_to IS NULL OR NOT following.went_round
          OR (following.queue, following.tenant_id, following.type, following.limit_key,
                following.priority)
            <= (p_walked_to ->> 0, p_walked_to ->> 1, p_walked_to ->> 2, p_walked_to ->> 3,
                (p_walked_to ->> 4)::smallint)
    ),
    visited AS (
        SELECT lane.*, row_number() OVER () AS visit,
            type = ANY(p_types) AND (p_queues IS NULL OR queue = ANY(p_queues))
                AND (p_max_priority IS NULL OR priority <= p_max_priority) AS wanted
        FROM lane LIMIT 4097
    ),
    found AS (SELECT * FROM visited WHERE visit > 1 AND (wanted OR visit = 4097) LIMIT 512)
    SELECT array_agg((queue, tenant_id, type, limit_key, priority, 0)::{schema}.lane)
            FILTER (WHERE wanted),
        CASE WHEN count(*) = 512 OR max(visit) = 4097 THEN (
            array_agg(json_build_array(queue, tenant_id, type, limit_key, priority)
                ORDER BY visit DESC))[1] END
    INTO lanes, walked_to
    FROM found;
END
$$;
COMMENT ON FUNCTION {schema}.lanes_after IS 'The lanes that hold queued jobs, found step by step.';

CREATE OR REPLACE FUNCTION {schema}.lane_shares(
    p_lanes {schema}.lane[], p_limit integer, p_last_tenant text, p_at_most json)
RETURNS integer[]
LANGUAGE sql STABLE AS $$
    -- How many of each lane the turns of the tenants come to, of some types at most so many; nothing
    -- is locked yet.
    WITH lane AS MATERIALIZED (
        SELECT * FROM unnest(p_lanes) WITH ORDINALITY
            AS lane (queue, tenant_id, type, limit_key, priority, from_rank, number)
    ),
    seen AS (
        SELECT lane.number, lane.tenant_id, lane.type,
            row_number() OVER (PARTITION BY lane.tenant_id ORDER BY found.rank, found.seq) AS turn
        FROM lane CROSS JOIN LATERAL (
            SELECT rank, seq FROM {schema}.jobs_live AS jobs
            WHERE jobs.status IN ({from claim}) AND jobs.queue = lane.queue
              AND jobs.tenant_id = lane.tenant_id AND jobs.type = lane.type
              AND jobs.limit_key = lane.limit_key AND jobs.priority = lane.priority
              AND jobs.rank >= lane.from_rank
            ORDER BY rank, seq LIMIT greatest(16, 4 * p_limit / cardinality(p_lanes))
        ) AS found
    ),
    counted AS (
        SELECT *, row_number() OVER (
            PARTITION BY type ORDER BY turn, tenant_id <= p_last_tenant, tenant_id) AS of_type
        FROM seen
    ),
    dealt AS (
        SELECT number FROM counted
        WHERE p_at_most IS NULL OR of_type <= coalesce((p_at_most ->> type)::integer, p_limit)
        ORDER BY turn, tenant_id <= p_last_tenant, tenant_id LIMIT p_limit
    ),
    quota AS (SELECT number, count(*)::integer AS jobs FROM dealt GROUP BY number)
    SELECT array_agg(coalesce(quota.jobs, 0) ORDER BY lane.number)
    FROM lane LEFT JOIN quota USING (number)
$$;
COMMENT ON FUNCTION {schema}.lane_shares IS 'How many jobs of each lane a claim should take.';

CREATE OR REPLACE FUNCTION {schema}.gated() RETURNS boolean
LANGUAGE sql STABLE
RETURN EXISTS (SELECT FROM {schema}.pauses WHERE scope <> 'job')
    OR EXISTS (SELECT FROM {schema}.limits WHERE kind <> 'depth')
    OR EXISTS (SELECT FROM {schema}.breakers);
COMMENT ON FUNCTION {schema}.gated IS 'Whether claims must weigh pauses, limits or breakers.';

-- A row about the claim itself, with the ids of the jobs to lease, which are locked now.
CREATE OR REPLACE FUNCTION {schema}.choose_jobs(
    p_types text[], p_queues text[], p_max_priority integer, p_limit integer, p_at_most json,
    p_last_tenant text, p_walked_to json, p_known {schema}.lane[], p_tidy boolean, p_stage integer,
    p_now bigint,
    OUT needs text, OUT due bigint, OUT staged integer, OUT walked_to text, OUT lanes text,
    OUT walk_us bigint, OUT ids text[])
LANGUAGE plpgsql
-- The plans are made once, perhaps while the tables are empty, and must still do when they are not.
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := {schema}.at(p_now);
    v_lanes {schema}.lane[] := p_known;
    v_walked_to json;
    v_shares integer[];
    v_began timestamptz;
BEGIN
    -- Pauses, limits and breakers are weighed by the caller, one claim at a time.
    IF {schema}.gated() THEN
        needs := 'gates';
        RETURN;
    END IF;
    IF p_known IS NULL THEN
        due := {schema}.due_in(p_now);
        IF p_tidy AND due <= 0 THEN
            staged := {schema}.stage_due(p_now, p_stage);
            due := {schema}.due_in(p_now);
        END IF;
        -- What expired, and what must join a line, is seen to by the caller.
        IF p_tidy AND (due <= 0 AND staged < p_stage
            OR EXISTS (SELECT FROM {schema}.jobs_live
                WHERE status IN ({from expire}) AND expires_at <= v_now))
        THEN
            needs := 'tidying';
            RETURN;
        END IF;
        v_began := clock_timestamp();
        SELECT walk.lanes, walk.walked_to INTO v_lanes, v_walked_to
        FROM {schema}.lanes_after(p_walked_to, p_types, p_queues, p_max_priority) AS walk;
        walked_to := v_walked_to;
        lanes := CASE WHEN cardinality(v_lanes) <= 64 THEN to_json(v_lanes) END;
        walk_us := extract(microseconds FROM clock_timestamp() - v_began)::bigint;
    END IF;
    IF cardinality(v_lanes) > 1 THEN
        v_shares := {schema}.lane_shares(v_lanes, p_limit, p_last_tenant, p_at_most);
    ELSE
        v_shares := ARRAY[least(p_limit, (p_at_most ->> (v_lanes[1]).type)::integer)];
    END IF;

    -- A row that another claim holds is passed over for the next one in its lane.
    WITH locked AS MATERIALIZED (
        SELECT held.id, lane.tenant_id,
            row_number() OVER (PARTITION BY lane.tenant_id ORDER BY held.rank, held.seq) AS turn
        FROM ROWS FROM (unnest(v_lanes), unnest(v_shares))
            AS lane (queue, tenant_id, type, limit_key, priority, from_rank, jobs)
        CROSS JOIN LATERAL (
            SELECT jobs.id, jobs.rank, jobs.seq FROM {schema}.jobs_live AS jobs
            WHERE jobs.status IN ({from claim}) AND jobs.queue = lane.queue
              AND jobs.tenant_id = lane.tenant_id AND jobs.type = lane.type
              AND jobs.limit_key = lane.limit_key AND jobs.priority = lane.priority
              AND jobs.rank >= lane.from_rank
              AND (jobs.expires_at IS NULL OR jobs.expires_at > v_now)
            ORDER BY jobs.rank, jobs.seq LIMIT lane.jobs FOR UPDATE SKIP LOCKED
        ) AS held
    )
    SELECT array_agg(id ORDER BY turn, tenant_id <= p_last_tenant, tenant_id) INTO ids FROM locked;
END
$$;
COMMENT ON FUNCTION {schema}.choose_jobs
    IS 'Locks the most urgent jobs, tenants in turn, while nothing is paused or limited.';

CREATE OR REPLACE FUNCTION {schema}.lock_queued(p_ids text[], p_now bigint) RETURNS text[]
LANGUAGE plpgsql
-- The plans are made once, perhaps while the tables are empty, and must still do when they are not.
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    v_ids text[];
BEGIN
    WITH locked AS MATERIALIZED (
        SELECT id FROM {schema}.jobs_live
        WHERE id = ANY(p_ids) AND status || '' IN ({from claim})
          AND (expires_at IS NULL OR expires_at > {schema}.at(p_now))
        FOR UPDATE SKIP LOCKED
    )
    SELECT array_agg(id ORDER BY array_position(p_ids, id)) INTO v_ids FROM locked;
    RETURN v_ids;
END
$$;
COMMENT ON FUNCTION {schema}.lock_queued
    IS 'Locks those of the jobs that are still queued, for a claim that has chosen them.';

CREATE OR REPLACE FUNCTION {schema}.lease(
    p_ids text[], p_owner text, p_start integer, p_lease_ms bigint, p_type_lease_ms json,
    p_now bigint, p_monotonic bigint
) RETURNS TABLE (
    rank bigint, id text, fence bigint, type text, queue text, priority integer, payload text,
    attempts integer, snoozes integer, rescues integer, max_retries integer, retry_delay_ms bigint,
    backoff_multiplier double precision, timeout_ms bigint, expires_at bigint, checkpoint text,
    tenant_id text, workspace_id text, parent_job_id text, key text, metadata text,
    trace_context text, created_at bigint, queued_at bigint, started_at bigint, limit_key text)
LANGUAGE plpgsql
-- The plans are made once, perhaps while the tables are empty, and must still do when they are not.
SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
    v_now timestamptz := {schema}.at(p_now);
    v_until timestamptz := {schema}.at(p_monotonic + p_lease_ms);
    v_alike boolean := p_type_lease_ms::text = '{}';
BEGIN
    IF p_ids IS NULL THEN
        RETURN;
    END IF;
    RETURN QUERY WITH leased AS (
        UPDATE {schema}.jobs_live AS jobs
        SET status = 'in_progress', fence = fence + 1, lease_owner = p_owner, updated_at = v_now,
            lease_until = CASE WHEN v_alike THEN v_until ELSE {schema}.at(p_monotonic
                + coalesce((p_type_lease_ms ->> jobs.type)::bigint, p_lease_ms)) END,
            -- One that keeps coming back without a counted execution counts as started at once.
            started_at = CASE WHEN chosen.place <= p_start OR returns >= 3 THEN v_now END,
            progress_percent = NULL, progress_message = NULL, progress = NULL
        FROM unnest(p_ids) WITH ORDINALITY AS chosen (id, place)
        WHERE jobs.id = chosen.id
        RETURNING rank, jobs.id, fence, type, queue, priority::integer, payload::text, attempts,
            snoozes, rescues, max_retries, retry_delay_ms, backoff_multiplier, timeout_ms,
            {schema}.ms(expires_at), checkpoint, tenant_id, workspace_id, parent_job_id, key,
            metadata::text, trace_context, {schema}.ms(created_at), {schema}.ms(queued_at),
            {schema}.ms(started_at), nullif(limit_key, '') AS limit_key, key_scope, place
    ),
    unkeyed AS (
        DELETE FROM {schema}.job_keys
        WHERE scope = 'while_pending'
          AND job_id = ANY(ARRAY(SELECT leased.id FROM leased WHERE key_scope = 'while_pending'))
    )
    SELECT l.rank, l.id, l.fence, l.type, l.queue, l.priority, l.payload, l.attempts, l.snoozes,
        l.rescues, l.max_retries, l.retry_delay_ms, l.backoff_multiplier, l.timeout_ms, l.expires_at,
        l.checkpoint, l.tenant_id, l.workspace_id, l.parent_job_id, l.key, l.metadata,
        l.trace_context, l.created_at, l.queued_at, l.started_at, l.limit_key
    FROM leased AS l (rank, id, fence, type, queue, priority, payload, attempts, snoozes, rescues,
        max_retries, retry_delay_ms, backoff_multiplier, timeout_ms, expires_at, checkpoint,
        tenant_id, workspace_id, parent_job_id, key, metadata, trace_context, created_at, queued_at,
        started_at, limit_key, key_scope, place)
    ORDER BY l.place;
END
$$;
COMMENT ON FUNCTION {schema}.lease IS 'Leases jobs that the caller has locked, in the order given.';
