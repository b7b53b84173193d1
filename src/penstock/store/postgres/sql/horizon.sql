-- name: oldest_transaction
-- Only what has a snapshot or has written keeps rows from being cleaned up. Of other users' sessions
-- a user without pg_read_all_stats sees nothing.
SELECT pid, coalesce(application_name, ''), coalesce(usename::text, ''), coalesce(state, ''),
    floor(extract(epoch FROM clock_timestamp() - xact_start) * 1000)::bigint
FROM pg_stat_activity
WHERE (datname = current_database() OR datname IS NULL) AND pid <> pg_backend_pid()
  AND (backend_xmin IS NOT NULL OR backend_xid IS NOT NULL) AND xact_start IS NOT NULL
  AND backend_type <> 'autovacuum worker'
ORDER BY xact_start LIMIT 1;

-- name: dead_rows
SELECT n_live_tup, n_dead_tup FROM pg_stat_user_tables WHERE relid = 'jobs_live'::regclass;

-- name: walk
SELECT walked_to FROM lanes_after(NULL, '{}', NULL, NULL);
