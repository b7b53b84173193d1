-- Endpoints, what they are told of, and each attempt to tell them. `secret` names where a secret
-- comes from, never the secret; times are UTC milliseconds; headers and metadata are JSON.
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
    enabled_at     BIGINT NOT NULL,
    disabled_for   TEXT,
    disabled_at    BIGINT,
    is_ordered     INTEGER NOT NULL,
    max_failures   INTEGER NOT NULL,
    success_count  BIGINT NOT NULL,
    failure_count  BIGINT NOT NULL,
    mean_latency   DOUBLE PRECISION,
    delivered_at   BIGINT,
    metadata       TEXT NOT NULL,
    created_at     BIGINT NOT NULL,
    updated_at     BIGINT NOT NULL
);
CREATE INDEX agents_webhooks_tenant ON agents_webhooks (tenant_id, created_at);
CREATE INDEX agents_webhooks_disabled ON agents_webhooks (disabled_at) WHERE is_enabled = 0;

CREATE TABLE agents_subscriptions (
    webhook_id TEXT NOT NULL,
    topic      TEXT NOT NULL,
    tenant_id  TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (webhook_id, topic)
);
CREATE INDEX agents_subscriptions_topic ON agents_subscriptions (tenant_id, topic);

-- One row for each request, the `n`-th of its job. The payload stands with the first of them.
CREATE TABLE agents_webhook_deliveries (
    id            TEXT PRIMARY KEY,
    tenant_id     TEXT NOT NULL,
    webhook_id    TEXT NOT NULL,
    job_id        TEXT NOT NULL,
    n             INTEGER NOT NULL,
    attempt       INTEGER NOT NULL,
    waits         INTEGER NOT NULL,
    message_id    TEXT NOT NULL,
    topic         TEXT NOT NULL,
    person        TEXT,
    payload       TEXT,
    status        TEXT NOT NULL,
    status_code   INTEGER,
    latency_ms    BIGINT,
    response_body TEXT,
    error_message TEXT,
    created_at    BIGINT NOT NULL,
    UNIQUE (job_id, n)
);
CREATE INDEX agents_webhook_deliveries_webhook
    ON agents_webhook_deliveries (webhook_id, created_at);
CREATE INDEX agents_webhook_deliveries_failed
    ON agents_webhook_deliveries (webhook_id, created_at) WHERE status = 'failed';
CREATE INDEX agents_webhook_deliveries_time ON agents_webhook_deliveries (created_at);

-- How far the history of a Slack channel has become memories: up to the message `newest`.
CREATE TABLE agents_slack_channels (
    tenant_id  TEXT NOT NULL,
    connection TEXT NOT NULL,
    channel    TEXT NOT NULL,
    newest     TEXT NOT NULL,
    messages   BIGINT NOT NULL,
    synced_at  BIGINT NOT NULL,
    PRIMARY KEY (tenant_id, connection, channel)
);
