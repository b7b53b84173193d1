CREATE TABLE outbox_jobs (
    id text PRIMARY KEY,
    tenant_id text NOT NULL,
    created_by text,
    document text NOT NULL,
    created_at bigint NOT NULL,
    tries integer NOT NULL DEFAULT 0,
    error text
);
