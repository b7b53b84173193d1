CREATE TABLE outbox_jobs (
    id TEXT PRIMARY KEY,
    tenant_id TEXT NOT NULL,
    created_by TEXT,
    document TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    tries INTEGER NOT NULL DEFAULT 0,
    error TEXT
) STRICT, WITHOUT ROWID;
