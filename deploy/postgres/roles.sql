-- Who may do what in PostgreSQL. An administrator of the server runs this once, and again to change a password,
-- with psql 15 or newer, in the database that Penstock is to use, and the three passwords in the environment:
--   psql --file roles.sql shop
-- Nobody here is a superuser or passes row-level security. `penstock migrate` has to run as the owner after it.
\set ON_ERROR_STOP on
\getenv owner_password PENSTOCK_OWNER_PASSWORD
\getenv server_password PENSTOCK_SERVER_PASSWORD
\getenv worker_password PENSTOCK_WORKER_PASSWORD

SELECT format('CREATE ROLE %I', name)
FROM unnest(ARRAY['penstock_owner', 'penstock_worker', 'penstock_server', 'penstock_tenant']) AS name
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name)
\gexec

-- Owns the tables: `penstock migrate` alone connects as this one.
ALTER ROLE penstock_owner LOGIN NOSUPERUSER NOBYPASSRLS PASSWORD :'owner_password';
GRANT CONNECT, CREATE ON DATABASE :"DBNAME" TO penstock_owner;

-- Read and write rows, and change no table. What they may do is granted by `penstock migrate` to penstock_worker.
ALTER ROLE penstock_worker LOGIN NOSUPERUSER NOBYPASSRLS PASSWORD :'worker_password';
ALTER ROLE penstock_server LOGIN NOSUPERUSER NOBYPASSRLS PASSWORD :'server_password';
GRANT penstock_worker TO penstock_server;
GRANT CONNECT ON DATABASE :"DBNAME" TO penstock_worker, penstock_server;

-- `penstock doctor`, run as the server's role, names whose transactions and replicas hold others up.
GRANT pg_read_all_stats TO penstock_server;
