-- The server: small documents (tokens, users, sessions, alerts) and the audit log, which 0001 reserved
-- and nobody wrote.

CREATE TABLE records (
    kind       TEXT NOT NULL,
    name       TEXT NOT NULL,
    document   TEXT NOT NULL,
    revision   INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (kind, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX records_expiring ON records (expires_at) WHERE expires_at IS NOT NULL;

DROP TABLE audit_log;
CREATE TABLE audit_log (
    seq       INTEGER PRIMARY KEY,
    at        INTEGER NOT NULL,
    actor     TEXT NOT NULL,
    action    TEXT NOT NULL,
    subject   TEXT NOT NULL,
    tenant_id TEXT NOT NULL,
    details   TEXT NOT NULL,
    previous  TEXT NOT NULL,
    hash      TEXT NOT NULL
) STRICT;
