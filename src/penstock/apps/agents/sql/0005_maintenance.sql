-- What each tenant may use; those of the tenant * are every other one's.
CREATE TABLE agents_quotas (
    tenant_id  TEXT NOT NULL,
    measure    TEXT NOT NULL,
    period     TEXT NOT NULL,
    most       DOUBLE PRECISION NOT NULL,
    warn_at    DOUBLE PRECISION NOT NULL,
    action     TEXT NOT NULL,
    throttle   TEXT NOT NULL,
    updated_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, measure)
);

-- What each has used. A counter is spread over slots, so that no row is hot.
CREATE TABLE agents_usage (
    tenant_id TEXT NOT NULL,
    measure   TEXT NOT NULL,
    period    TEXT NOT NULL,
    slot      INTEGER NOT NULL,
    used      DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (tenant_id, measure, period, slot)
);

-- How far each is, as it was last seen: open, warned, throttled, blocked. `limited` says that a
-- limit of the tenant's jobs was set for it, to be taken away again.
CREATE TABLE agents_standings (
    tenant_id  TEXT NOT NULL,
    measure    TEXT NOT NULL,
    period     TEXT NOT NULL,
    state      TEXT NOT NULL,
    used       DOUBLE PRECISION NOT NULL,
    limited    INTEGER NOT NULL,
    changed_at BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, measure)
);

-- What a call of a model may take, until it is known what it took. `amounts` is JSON.
CREATE TABLE agents_reservations (
    id         TEXT PRIMARY KEY,
    tenant_id  TEXT NOT NULL,
    amounts    TEXT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX agents_reservations_created ON agents_reservations (created_at);

-- Exports of audits and of tenants' data. `contents` is JSON: how much there is of what.
CREATE TABLE agents_exports (
    id         TEXT PRIMARY KEY,
    tenant_id  TEXT NOT NULL,
    user_id    TEXT,
    kind       TEXT NOT NULL,
    file       TEXT NOT NULL,
    sha256     TEXT,
    bytes      BIGINT,
    contents   TEXT NOT NULL,
    status     TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    ended_at   BIGINT
);
CREATE INDEX agents_exports_tenant ON agents_exports (tenant_id, created_at);

-- Deletions and their certificates: what was removed, never what it said. They stay; who it was
-- about stands here until it is done, and afterwards only a keyed hash of it.
CREATE TABLE agents_deletions (
    id           TEXT PRIMARY KEY,
    subject      TEXT,
    subject_hash TEXT NOT NULL,
    jobs         TEXT NOT NULL,
    found        TEXT,
    status       TEXT NOT NULL,
    certificate  TEXT,
    created_at   BIGINT NOT NULL,
    ended_at     BIGINT
);
