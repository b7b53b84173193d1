-- Enqueueing one job, or many that differ in nothing but id and payload, in one round trip and with
-- the server's own time.

CREATE OR REPLACE FUNCTION {schema}.refuse_ended(p_id text) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    -- Sees more than the statement that calls it: a job that ended while that one waited for it.
    IF EXISTS (SELECT FROM {schema}.jobs_ended WHERE id = p_id) THEN
        RAISE EXCEPTION USING ERRCODE = 'serialization_failure', MESSAGE = 'the job ended meanwhile';
    END IF;
END
$$;
COMMENT ON FUNCTION {schema}.refuse_ended
    IS 'Has an insertion repeated whose job ended meanwhile, so that it does not live a second time.';

-- Its values are typed: reading them from a document would take a third of the time.
CREATE OR REPLACE FUNCTION {schema}.enqueue_one(
    p_id text, p_type text, p_payload json, p_queue text, p_category text, p_priority smallint,
    p_max_retries integer, p_retry_delay_ms bigint, p_backoff_multiplier double precision,
    p_timeout_ms bigint, p_delay_ms bigint, p_scheduled_at bigint, p_expires_in_ms bigint,
    p_expires_at bigint, p_tenant_id text, p_workspace_id text, p_created_by text,
    p_parent_job_id text, p_schedule_id text, p_limit_key text, p_tags text[], p_metadata json,
    p_keep_completed bigint, p_keep_failed bigint, p_trace_context text, p_now bigint, OUT now bigint, OUT fresh boolean)
LANGUAGE plpgsql
-- The plans are made once, perhaps while the tables are empty, and must still do when they are not.
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan
AS $$
DECLARE
    moment CONSTANT bigint := coalesce(p_now, {schema}.clock_ms());
    at CONSTANT timestamptz := {schema}.at(moment);
    due CONSTANT bigint := coalesce(p_scheduled_at, moment + p_delay_ms);
BEGIN
    INSERT INTO {schema}.jobs_live (
        id, type, payload, queue, category, priority, max_retries, retry_delay_ms,
        backoff_multiplier, timeout_ms, tenant_id, workspace_id, created_by, parent_job_id,
        schedule_id, limit_key, tags, metadata, keep_completed, keep_failed, trace_context, rank,
        scheduled_at, status, queued_at, created_at, updated_at, expires_at)
    SELECT p_id, p_type, p_payload, p_queue, p_category, p_priority, p_max_retries,
        p_retry_delay_ms, p_backoff_multiplier, p_timeout_ms, p_tenant_id, p_workspace_id,
        p_created_by, p_parent_job_id, p_schedule_id, p_limit_key, p_tags, p_metadata,
        p_keep_completed, p_keep_failed, p_trace_context, due + (p_priority - 1) * 3600000::bigint, {schema}.at(due),
        CASE WHEN due <= moment THEN 'queued' ELSE 'pending' END,
        CASE WHEN due <= moment THEN at END, at, at,
        {schema}.at(coalesce(p_expires_at, moment + p_expires_in_ms))
    WHERE NOT EXISTS (SELECT FROM {schema}.jobs_ended WHERE id = p_id)
    ON CONFLICT (id) DO NOTHING;
    now := moment;
    fresh := FOUND;
    IF fresh AND EXISTS (SELECT FROM {schema}.jobs_ended WHERE id = p_id) THEN
        PERFORM {schema}.refuse_ended(p_id);
    END IF;
END
$$;
COMMENT ON FUNCTION {schema}.enqueue_one IS 'Enqueues a job; not fresh if it was there before.';

CREATE OR REPLACE FUNCTION {schema}.row_like(p_like json, p_now bigint)
RETURNS TABLE (
    type text, queue text, tenant_id text, status text, rank bigint, priority smallint,
    max_retries integer, timeout_ms bigint, scheduled_at timestamptz, created_at timestamptz,
    queued_at timestamptz, expires_at timestamptz, retry_delay_ms bigint,
    backoff_multiplier double precision, category text, workspace_id text, created_by text,
    parent_job_id text, schedule_id text, limit_key text, tags text[], metadata json,
    keep_completed bigint, keep_failed bigint, trace_context text)
LANGUAGE sql STABLE AS $$
    SELECT type, queue, tenant_id, CASE WHEN due <= p_now THEN 'queued' ELSE 'pending' END,
        due + (priority - 1) * 3600000::bigint, priority, max_retries, timeout_ms,
        {schema}.at(due), {schema}.at(p_now), CASE WHEN due <= p_now THEN {schema}.at(p_now) END,
        {schema}.at(coalesce(expires_at, p_now + expires_in_ms)), retry_delay_ms,
        backoff_multiplier, category, workspace_id, created_by, parent_job_id, schedule_id,
        coalesce(limit_key, ''), CASE WHEN tags <> '{}' THEN tags END, metadata::json, keep_completed,
        keep_failed, trace_context
    FROM json_to_record(p_like) AS job (
        type text, queue text, tenant_id text, priority smallint, max_retries integer,
        timeout_ms bigint, delay_ms bigint, scheduled_at bigint, expires_at bigint,
        expires_in_ms bigint, retry_delay_ms bigint, backoff_multiplier double precision,
        category text, workspace_id text, created_by text, parent_job_id text, schedule_id text,
        limit_key text, tags text[], metadata text, keep_completed bigint, keep_failed bigint,
        trace_context text)
    CROSS JOIN LATERAL (SELECT coalesce(job.scheduled_at, p_now + job.delay_ms) AS due) AS falls
    -- Worked out once, and not once per job.
    OFFSET 0
$$;
COMMENT ON FUNCTION {schema}.row_like IS 'What jobs that are enqueued together have in common.';

CREATE OR REPLACE FUNCTION {schema}.enqueue_alike(
    p_like json, p_ids text, p_payloads text, p_now bigint, OUT now bigint, OUT fresh boolean)
LANGUAGE plpgsql
-- The plans are made once, perhaps while the tables are empty, and must still do when they are not.
SET enable_seqscan = off SET plan_cache_mode = force_generic_plan
AS $$
#variable_conflict use_column
DECLARE
    moment CONSTANT bigint := coalesce(p_now, {schema}.clock_ms());
    ids CONSTANT text[] := string_to_array(p_ids, E'\x1f');
BEGIN
    now := moment;
    -- Without a look for conflicts: jobs that are known are rare, and looking costs a sixth.
    BEGIN
        INSERT INTO {schema}.jobs_live (
            type, queue, tenant_id, status, rank, priority, max_retries, timeout_ms, scheduled_at,
            created_at, queued_at, expires_at, retry_delay_ms, backoff_multiplier, category,
            workspace_id, created_by, parent_job_id, schedule_id, limit_key, tags, metadata,
            keep_completed, keep_failed, trace_context, updated_at, id, payload)
        SELECT job.*, job.created_at, given.id, given.payload::json
        FROM {schema}.row_like(p_like, moment) AS job
        CROSS JOIN unnest(ids, string_to_array(p_payloads, E'\x1f')) AS given (id, payload);
        -- Asked after the insert: a job that ended before it must not live a second time.
        IF EXISTS (SELECT FROM {schema}.jobs_ended WHERE id = ANY(ids)) THEN
            RAISE unique_violation;
        END IF;
        fresh := true;
    EXCEPTION WHEN unique_violation THEN
        fresh := false;
    END;
END
$$;
COMMENT ON FUNCTION {schema}.enqueue_alike
    IS 'Enqueues jobs that are alike; not fresh, and none of them, if one was there before.';
