-- A worker reads and writes every row, and changes no table.

GRANT USAGE ON SCHEMA {schema} TO {worker};
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {worker};
GRANT USAGE ON ALL SEQUENCES IN SCHEMA {schema} TO {worker};
GRANT EXECUTE ON FUNCTION {schema}.record_changes TO {worker};

DO $$
DECLARE
    part text;
BEGIN
    FOREACH part IN ARRAY ARRAY['jobs', 'jobs_live', 'jobs_ended', 'job_executions', 'job_keys',
        'job_logs', 'dead_letter_jobs', 'job_dependencies', 'order_lines', 'job_schedules', 'pauses',
        'limits', 'slots', 'rate_starts', 'breakers', 'workers', 'leaders', 'metrics',
        'metric_deltas', 'audit_log', 'records', 'followers', 'job_changes', 'penstock_meta']
    LOOP
        EXECUTE format('DROP POLICY IF EXISTS worker ON {schema}.%I', part);
        EXECUTE format('CREATE POLICY worker ON {schema}.%I TO {worker} USING (true)', part);
    END LOOP;
END
$$;
