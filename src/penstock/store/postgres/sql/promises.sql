-- name: meta
SELECT value FROM penstock_meta WHERE name = ?;

-- name: settings
SELECT current_setting('server_version'), current_setting('synchronous_commit'),
    current_setting('fsync'), current_setting('full_page_writes'), current_setting('autovacuum'),
    current_setting('synchronous_standby_names');

-- name: standbys
-- How many there are anybody may see; which are waited for, only whoever may read all statistics.
SELECT count(*), count(*) FILTER (WHERE sync_state IN ('sync', 'quorum')),
    pg_has_role('pg_read_all_stats', 'USAGE')
FROM pg_stat_replication;

-- name: identity
SELECT current_user, current_schema(),
    (SELECT pg_has_role(relowner, 'USAGE') FROM pg_class WHERE oid = 'penstock_meta'::regclass),
    (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user);

-- name: unprotected
-- Tables of ours that would show a tenant the rows of others.
SELECT relname FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind IN ('r', 'p')
  AND relowner = (SELECT relowner FROM pg_class WHERE oid = 'penstock_meta'::regclass)
  AND NOT (relrowsecurity AND relforcerowsecurity)
ORDER BY relname;
