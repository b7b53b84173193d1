-- A tenant sees and changes its own rows. It may look into every table, so that no question fails,
-- and finds nothing where no policy gives it rows.

GRANT USAGE ON SCHEMA {schema} TO {tenant};
GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {tenant};
GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {tenant};
GRANT INSERT, UPDATE, DELETE ON {schema}.jobs, {schema}.jobs_live, {schema}.jobs_ended,
    {schema}.job_executions, {schema}.job_keys, {schema}.job_logs, {schema}.dead_letter_jobs,
    {schema}.job_dependencies, {schema}.order_lines, {schema}.job_schedules, {schema}.pauses
    TO {tenant};
GRANT INSERT ON {schema}.metric_deltas TO {tenant};
GRANT DELETE ON {schema}.job_changes TO {tenant};
GRANT EXECUTE ON FUNCTION {schema}.is_foreign TO {tenant};

DO $$
DECLARE
    -- As a subquery it is asked once, and not once per row.
    mine CONSTANT text := 'tenant_id = (SELECT {schema}.tenant())';
    part text;
    unless_taken text;
BEGIN
    FOR part, unless_taken IN VALUES
        ('jobs', ' AND NOT {schema}.is_foreign(id)'),
        ('jobs_live', ' AND NOT {schema}.is_foreign(id)'),
        ('jobs_ended', ' AND NOT {schema}.is_foreign(id)'),
        ('dead_letter_jobs', ' AND NOT {schema}.is_foreign(job_id)'),
        ('job_keys', ' AND NOT {schema}.is_foreign(job_id)'),
        ('order_lines', ' AND NOT {schema}.is_foreign(last_id)'),
        ('job_schedules', '')
    LOOP
        EXECUTE format('DROP POLICY IF EXISTS tenant ON {schema}.%I', part);
        EXECUTE format('CREATE POLICY tenant ON {schema}.%I TO {tenant} USING (%s) WITH CHECK (%s)',
            part, mine, mine || unless_taken);
    END LOOP;
END
$$;

-- A child of another tenant's job would be listed with it. Somebody who works for all tenants may make
-- one, and its tenant still changes everything of it but that.
DO $$
DECLARE
    part text;
    others text;
BEGIN
    FOREACH part IN ARRAY ARRAY['jobs', 'jobs_live', 'jobs_ended'] LOOP
        EXECUTE format('DROP POLICY IF EXISTS tenant_parent ON {schema}.%I', part);
        EXECUTE format('CREATE POLICY tenant_parent ON {schema}.%I AS RESTRICTIVE FOR INSERT '
            'TO {tenant} WITH CHECK (parent_job_id IS NULL '
            'OR NOT {schema}.is_foreign(parent_job_id))', part);
        SELECT string_agg(quote_ident(attname), ', ') INTO others FROM pg_attribute
        WHERE attrelid = format('{schema}.%I', part)::regclass AND attnum > 0
          AND NOT attisdropped AND attname <> 'parent_job_id';
        EXECUTE format('REVOKE UPDATE ON {schema}.%I FROM {tenant}', part);
        EXECUTE format('GRANT UPDATE (%s) ON {schema}.%I TO {tenant}', others, part);
    END LOOP;
END
$$;

DROP POLICY IF EXISTS tenant ON {schema}.job_executions;
CREATE POLICY tenant ON {schema}.job_executions TO {tenant}
    USING (EXISTS (SELECT 1 FROM {schema}.jobs
        WHERE jobs.id = job_id AND jobs.tenant_id = (SELECT {schema}.tenant())));

DROP POLICY IF EXISTS tenant ON {schema}.job_logs;
CREATE POLICY tenant ON {schema}.job_logs TO {tenant}
    USING (EXISTS (SELECT 1 FROM {schema}.jobs
        WHERE jobs.id = job_id AND jobs.tenant_id = (SELECT {schema}.tenant())));

-- Waiting for another tenant's job would tell when it ends, and hand over its result.
DROP POLICY IF EXISTS tenant ON {schema}.job_dependencies;
CREATE POLICY tenant ON {schema}.job_dependencies TO {tenant}
    USING (EXISTS (SELECT 1 FROM {schema}.jobs
        WHERE jobs.id = child_id AND jobs.tenant_id = (SELECT {schema}.tenant())))
    WITH CHECK (2 = (SELECT count(*) FROM {schema}.jobs
        WHERE jobs.id IN (child_id, parent_id) AND jobs.tenant_id = (SELECT {schema}.tenant())));

-- It may pause and resume its own jobs; what an operator paused it can only see.
DROP POLICY IF EXISTS tenant ON {schema}.pauses;
CREATE POLICY tenant ON {schema}.pauses TO {tenant}
    USING (scope = 'job' AND EXISTS (SELECT 1 FROM {schema}.jobs
        WHERE jobs.id = name AND jobs.tenant_id = (SELECT {schema}.tenant())));
DROP POLICY IF EXISTS tenant_reads ON {schema}.pauses;
CREATE POLICY tenant_reads ON {schema}.pauses FOR SELECT TO {tenant}
    USING (scope IN ('queue', 'type')
        OR (scope = 'tenant' AND name = (SELECT {schema}.tenant())));

DROP POLICY IF EXISTS tenant_reads ON {schema}.limits;
CREATE POLICY tenant_reads ON {schema}.limits FOR SELECT TO {tenant}
    USING (scope IN ('queue', 'type') OR name = '*'
        OR (scope = 'tenant' AND name = (SELECT {schema}.tenant())));

DROP POLICY IF EXISTS tenant_reads ON {schema}.breakers;
CREATE POLICY tenant_reads ON {schema}.breakers FOR SELECT TO {tenant}
    USING (probe_id IS NULL OR EXISTS (SELECT 1 FROM {schema}.jobs
        WHERE jobs.id = probe_id AND jobs.tenant_id = (SELECT {schema}.tenant())));

DROP POLICY IF EXISTS tenant_reads ON {schema}.workers;
CREATE POLICY tenant_reads ON {schema}.workers FOR SELECT TO {tenant} USING (true);

DROP POLICY IF EXISTS tenant_reads ON {schema}.audit_log;
CREATE POLICY tenant_reads ON {schema}.audit_log FOR SELECT TO {tenant}
    USING (tenant_id = (SELECT {schema}.tenant()));

DROP POLICY IF EXISTS tenant_reads ON {schema}.penstock_meta;
CREATE POLICY tenant_reads ON {schema}.penstock_meta FOR SELECT TO {tenant} USING (true);

-- Its erasure takes them along. They are recorded with the owner's rights.
DROP POLICY IF EXISTS tenant ON {schema}.job_changes;
CREATE POLICY tenant ON {schema}.job_changes TO {tenant}
    USING (tenant_id = (SELECT {schema}.tenant()));

-- A tenant's cancel counts in the figures of the installation, which it cannot read.
DROP POLICY IF EXISTS tenant_adds ON {schema}.metric_deltas;
CREATE POLICY tenant_adds ON {schema}.metric_deltas FOR INSERT TO {tenant}
    WITH CHECK ({schema}.counts_own(sums, (SELECT {schema}.tenant())));
