-- For enqueues in a transaction of the caller's, which finds everything as it was afterwards.

-- name: whereabouts
-- A server is told from every other by the moment it started: anybody may ask for that.
SELECT current_database(), extract(epoch FROM pg_postmaster_start_time())::text;

-- name: caller
SELECT current_database(), extract(epoch FROM pg_postmaster_start_time())::text,
    current_user::text,
    (SELECT has_schema_privilege(oid, 'USAGE') FROM pg_namespace WHERE nspname = :schema),
    floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint,
    current_setting('transaction_isolation'), current_setting('transaction_read_only') = 'on',
    current_setting('search_path'), current_setting('lock_timeout'),
    current_setting('client_encoding'), current_setting('role'),
    coalesce(current_setting('penstock.tenant', true), '');

-- name: settle_in
SELECT set_config('search_path', :search_path, true), set_config('lock_timeout', :lock_timeout, true),
    set_config('client_encoding', :client_encoding, true);

-- name: act_as
SELECT set_config('role', :role, true), set_config('penstock.tenant', :tenant, true);

-- name: lock_name
SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ?, 0));

-- name: tell
-- Others hear of it when the caller commits, and of nothing when it does not.
SELECT pg_notify(:channel, '');

-- name: ended_since
SELECT 1 FROM jobs_ended WHERE id = ANY(?::text[]) LIMIT 1;
