-- What the store asks before it opens: of the server, of its own schema, of who it is there.

-- name: backend_pid
SELECT pg_backend_pid();

-- name: survey
-- All that decides what can be opened, and what has to be made first; the fields of State.
SELECT current_setting('server_version_num')::integer, current_setting('server_version'),
    pg_is_in_recovery(), current_setting('server_encoding'), current_user::text,
    (SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user),
    -- In a schema that exists, or else in the database that is to get one.
    coalesce(has_schema_privilege(schema.oid, 'CREATE'),
        has_database_privilege(current_database(), 'CREATE')),
    schema.oid IS NOT NULL,
    coalesce((SELECT pg_has_role(relowner, 'USAGE') FROM pg_class
        WHERE relname = 'penstock_meta' AND relnamespace = schema.oid), false),
    (SELECT count(*) FROM pg_roles WHERE rolname = ANY(:roles)) = cardinality(:roles),
    (SELECT pg_has_role(oid, 'MEMBER') FROM pg_roles WHERE rolname = :tenant),
    ARRAY(SELECT relname::text FROM pg_class
        WHERE relkind IN ('r', 'p', 'v', 'm', 'f') AND relnamespace = schema.oid)
FROM (SELECT) AS always LEFT JOIN pg_namespace AS schema ON nspname = :schema;

-- name: versions
SELECT name, value FROM penstock_meta WHERE name IN ('schema', 'access', 'functions');

-- name: lock_migration
SELECT pg_advisory_xact_lock(hashtextextended('penstock migrates ' || :schema, 0));
