-- Endpoints, what they are told of, and each attempt to tell them. Secrets are references or are
-- kept sealed; times are UTC milliseconds; headers, statistics and metadata are JSON.
CREATE TABLE agents_webhooks (
    id             TEXT PRIMARY KEY,
    tenant_id      TEXT NOT NULL,
    owner          TEXT,
    url            TEXT NOT NULL,
    secret         TEXT NOT NULL,
    former_secret  TEXT,
    former_until   BIGINT,
    headers        TEXT NOT NULL,
    is_enabled     INTEGER NOT NULL,
    disabled_for   TEXT,
    disabled_at    BIGINT,
    is_ordered     INTEGER NOT NULL,
    max_failures   INTEGER NOT NULL,
    success_count  INTEGER NOT NULL,
    failure_count  INTEGER NOT NULL,
    mean_latency   DOUBLE PRECISION,
    delivered_at   BIGINT,
    metadata       TEXT NOT NULL,
    created_at     BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL
);
CREATE INDEX agents_webhooks_tenant ON agents_webhooks (tenant_id, created_at);

CREATE TABLE agents_subscriptions (
    webhook_id TEXT NOT NULL,
    topic      TEXT NOT NULL,
    tenant_id  TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (webhook_id, topic)
);
CREATE INDEX agents_subscriptions_topic ON agents_subscriptions (tenant_id, topic);

CREATE TABLE agents_webhook_deliveries (
    id            TEXT PRIMARY KEY,
    tenant_id     TEXT NOT NULL,
    webhook_id    TEXT NOT NULL,
    job_id        TEXT NOT NULL,
    attempt       INTEGER NOT NULL,
    topic         TEXT NOT NULL,
    payload       TEXT NOT NULL,
    status        TEXT NOT NULL,
    status_code   INTEGER,
    latency_ms    BIGINT,
    response_body TEXT,
    error_message TEXT,
    created_at    BIGINT NOT NULL
);
CREATE INDEX agents_webhook_deliveries_webhook
    ON agents_webhook_deliveries (webhook_id, created_at);
CREATE INDEX agents_webhook_deliveries_job ON agents_webhook_deliveries (job_id);
