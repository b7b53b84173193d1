-- Row-level security on every table, for its owner too, who keeps all rows.

DO $$
DECLARE
    part text;
    its_owner name;
BEGIN
    FOREACH part IN ARRAY ARRAY['jobs', 'jobs_live', 'jobs_ended', 'job_executions', 'job_keys',
        'job_logs', 'dead_letter_jobs', 'job_dependencies', 'order_lines', 'job_schedules', 'pauses',
        'limits', 'slots', 'rate_starts', 'breakers', 'workers', 'leaders', 'metrics',
        'metric_deltas', 'audit_log', 'records', 'followers', 'job_changes', 'penstock_meta']
    LOOP
        SELECT pg_get_userbyid(relowner) INTO STRICT its_owner FROM pg_class
        WHERE oid = format('{schema}.%I', part)::regclass;
        EXECUTE format('ALTER TABLE {schema}.%I ENABLE ROW LEVEL SECURITY', part);
        EXECUTE format('ALTER TABLE {schema}.%I FORCE ROW LEVEL SECURITY', part);
        EXECUTE format('DROP POLICY IF EXISTS owner ON {schema}.%I', part);
        EXECUTE format('CREATE POLICY owner ON {schema}.%I TO %I USING (true)', part, its_owner);
    END LOOP;
END
$$;
