-- What each tenant may use, and has used. A counter is spread over slots, so that no row is hot.
CREATE TABLE agents_quotas (
    tenant_id  TEXT NOT NULL,
    measure    TEXT NOT NULL,
    period     TEXT NOT NULL,
    most       DOUBLE PRECISION NOT NULL,
    warn_at    DOUBLE PRECISION NOT NULL,
    action     TEXT NOT NULL,
    state      TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, measure)
);

CREATE TABLE agents_usage (
    tenant_id TEXT NOT NULL,
    measure   TEXT NOT NULL,
    period    TEXT NOT NULL,
    slot      INTEGER NOT NULL,
    used      DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (tenant_id, measure, period, slot)
);

-- Exports of audits and of tenants' data.
CREATE TABLE agents_exports (
    id         TEXT PRIMARY KEY,
    tenant_id  TEXT NOT NULL,
    kind       TEXT NOT NULL,
    file       TEXT,
    sha256     TEXT,
    bytes      BIGINT,
    contents   TEXT NOT NULL,
    status     TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    ended_at   BIGINT
);

-- Certificates of deletions: what was removed, never what it said. They stay.
CREATE TABLE agents_deletions (
    id           TEXT PRIMARY KEY,
    subject_hash TEXT NOT NULL,
    steps        TEXT NOT NULL,
    status       TEXT NOT NULL,
    certificate  TEXT,
    created_at   BIGINT NOT NULL,
    ended_at     BIGINT
);
