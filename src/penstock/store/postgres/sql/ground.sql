-- What the store asks before it opens: of the server, of its own schema, of who it is there.

-- name: backend_pid
SELECT pg_backend_pid();

-- name: server_version
SELECT current_setting('server_version');

-- name: server_number
SELECT current_setting('server_version_num')::integer;

-- name: is_standby
SELECT pg_is_in_recovery();

-- name: encoding
SELECT current_setting('server_encoding');

-- name: user
SELECT current_user;

-- name: may_make_roles
SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user;

-- name: may_create
-- In a schema that exists, or else in the database that is to get one.
SELECT coalesce(
    (SELECT has_schema_privilege(oid, 'CREATE') FROM pg_namespace WHERE nspname = :schema),
    has_database_privilege(current_database(), 'CREATE'));

-- name: schema_exists
SELECT 1 FROM pg_namespace WHERE nspname = :schema;

-- name: is_owner
SELECT pg_has_role(relowner, 'USAGE') FROM pg_class
WHERE relname = 'penstock_meta'
  AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = :schema);

-- name: known_roles
SELECT count(*) FROM pg_roles WHERE rolname = ANY(:roles);

-- name: is_member
SELECT pg_has_role(oid, 'MEMBER') FROM pg_roles WHERE rolname = :role;

-- name: table_names
SELECT array_agg(relname::text) FROM pg_class
WHERE relkind IN ('r', 'p', 'v', 'm', 'f')
  AND relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = :schema);

-- name: versions
SELECT name, value FROM penstock_meta WHERE name IN ('schema', 'access');

-- name: lock_migration
SELECT pg_advisory_xact_lock(hashtextextended('penstock migrates ' || :schema, 0));
