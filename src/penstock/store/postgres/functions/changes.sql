-- Recording what becomes of jobs, in the very transaction that changes them.

-- With its owner's rights: a tenant or a worker changes a job, and followers are none of its business.
CREATE OR REPLACE FUNCTION {schema}.record_change() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $$
BEGIN
    INSERT INTO {schema}.job_changes (follower, job_id, type, queue, tenant_id, status, fence, at)
    SELECT name, NEW.id, NEW.type, NEW.queue, NEW.tenant_id, NEW.status, NEW.fence, NEW.updated_at
    FROM {schema}.followers WHERE NEW.status = ANY (statuses);
    RETURN NULL;
END
$$;
COMMENT ON FUNCTION {schema}.record_change IS 'Records for every follower that a job has come to a status.';
REVOKE EXECUTE ON FUNCTION {schema}.record_change FROM PUBLIC;

-- With its owner's rights, because only the owner of a table may give it a trigger. Whoever holds
-- jobs for long must not keep everybody else waiting behind this.
CREATE OR REPLACE FUNCTION {schema}.record_changes() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET lock_timeout = '1s'
AS $$
DECLARE
    followed text;
BEGIN
    SELECT string_agg(DISTINCT quote_literal(status), ', ') INTO followed
    FROM {schema}.followers, unnest(statuses) AS status;
    IF followed IS NULL THEN
        DROP TRIGGER IF EXISTS jobs_made ON {schema}.jobs;
        DROP TRIGGER IF EXISTS jobs_changed ON {schema}.jobs;
        RETURN;
    END IF;
    -- A job that ends, or comes back, goes from one partition to the other: that is an insertion.
    EXECUTE format('CREATE OR REPLACE TRIGGER jobs_made AFTER INSERT ON {schema}.jobs FOR EACH ROW '
        'WHEN (NEW.status IN (%s)) EXECUTE FUNCTION {schema}.record_change()', followed);
    EXECUTE format('CREATE OR REPLACE TRIGGER jobs_changed AFTER UPDATE OF status ON {schema}.jobs '
        'FOR EACH ROW WHEN (NEW.status IN (%s) AND NEW.status <> OLD.status) '
        'EXECUTE FUNCTION {schema}.record_change()', followed);
END
$$;
COMMENT ON FUNCTION {schema}.record_changes
    IS 'Gives jobs the triggers that their followers need, and none where there are no followers.';
REVOKE EXECUTE ON FUNCTION {schema}.record_changes FROM PUBLIC;
