-- Two roles without a login, for those who need not own the tables. Roles belong to the whole server:
-- another database may have made them already, or be making them right now.

DO $$
BEGIN
    CREATE ROLE {worker} NOLOGIN;
    COMMENT ON ROLE {worker} IS 'May enqueue and do the jobs of all tenants, and change no table.';
    GRANT {worker} TO CURRENT_USER;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END
$$;

DO $$
BEGIN
    CREATE ROLE {tenant} NOLOGIN;
    COMMENT ON ROLE {tenant} IS 'Sees and changes the rows of one tenant, that of penstock.tenant.';
    GRANT {tenant} TO CURRENT_USER;
EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;
END
$$;
