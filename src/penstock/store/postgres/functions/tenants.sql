-- Whose rows a transaction may see and change; the policies are made of these.

CREATE OR REPLACE FUNCTION {schema}.tenant() RETURNS text
LANGUAGE sql STABLE PARALLEL SAFE
-- A setting made by SET LOCAL is empty, and not unset, once its transaction is over.
RETURN nullif(current_setting('penstock.tenant', true), '');
COMMENT ON FUNCTION {schema}.tenant IS 'The tenant this transaction works for, if it is bound to one.';

-- With its owner's eyes, because ids are unique within the living and within the ended jobs only:
-- a tenant that cannot see an ended job could give a living one its id, and so come by its history.
CREATE OR REPLACE FUNCTION {schema}.is_foreign(job_id text) RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp
BEGIN ATOMIC
    SELECT EXISTS (SELECT 1 FROM {schema}.jobs
        WHERE jobs.id = job_id AND jobs.tenant_id IS DISTINCT FROM {schema}.tenant());
END;
COMMENT ON FUNCTION {schema}.is_foreign IS 'Whether another tenant has a job of this id.';
REVOKE EXECUTE ON FUNCTION {schema}.is_foreign FROM PUBLIC;

-- Whatever else a roll-up would fail at, and with it the figures of everybody.
CREATE OR REPLACE FUNCTION {schema}.counts_own(sums jsonb, tenant text) RETURNS boolean
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
