-- name: webhook_add
INSERT INTO agents_webhooks (
    id, tenant_id, owner, url, secret, headers, is_enabled, enabled_at, is_ordered, max_failures,
    success_count, failure_count, metadata, created_at, updated_at
) VALUES (
    :id, :tenant_id, :owner, :url, :secret, :headers, 1, :now, :is_ordered, :max_failures,
    0, 0, :metadata, :now, :now
);

-- name: webhook_get
SELECT id, tenant_id, owner, url, secret, former_secret, former_until, headers, is_enabled,
       disabled_for, disabled_at, is_ordered, max_failures, success_count, failure_count,
       mean_latency, delivered_at, metadata, created_at, updated_at
FROM agents_webhooks WHERE id = ?;

-- name: webhook_list
SELECT id, tenant_id, owner, url, secret, former_secret, former_until, headers, is_enabled,
       disabled_for, disabled_at, is_ordered, max_failures, success_count, failure_count,
       mean_latency, delivered_at, metadata, created_at, updated_at
FROM agents_webhooks
WHERE (CAST(:tenant_id AS TEXT) IS NULL OR tenant_id = :tenant_id) AND id > :after
ORDER BY id LIMIT :most;

-- name: webhook_change
UPDATE agents_webhooks
SET url = :url, owner = :owner, headers = :headers, is_ordered = :is_ordered,
    max_failures = :max_failures, metadata = :metadata, updated_at = :now
WHERE id = :id;

-- name: webhook_rotate
UPDATE agents_webhooks
SET former_secret = secret, former_until = :until, secret = :secret, updated_at = :now
WHERE id = :id;

-- name: webhook_enable
UPDATE agents_webhooks
SET is_enabled = 1, enabled_at = :now, disabled_for = NULL, disabled_at = NULL, updated_at = :now
WHERE id = :id AND is_enabled = 0;

-- name: webhook_disable
UPDATE agents_webhooks
SET is_enabled = 0, disabled_for = :reason, disabled_at = :now, updated_at = :now
WHERE id = :id AND is_enabled = 1;

-- name: webhook_delete
DELETE FROM agents_webhooks WHERE id = ?;

-- name: webhook_forget_deliveries
DELETE FROM agents_webhook_deliveries WHERE webhook_id = ?;

-- name: webhook_succeeded
UPDATE agents_webhooks
SET mean_latency = (COALESCE(mean_latency, 0) * success_count + :latency) / (success_count + :many),
    success_count = success_count + :many,
    delivered_at = CASE WHEN delivered_at > :at THEN delivered_at ELSE :at END
WHERE id = :id;

-- name: webhook_failed
UPDATE agents_webhooks SET failure_count = failure_count + :many WHERE id = :id;

-- name: webhook_failing
-- The failures that speak against an endpoint: since it was last heard well of, or enabled.
SELECT count(*), min(delivery.created_at), max(delivery.created_at), webhook.max_failures,
       webhook.tenant_id
FROM agents_webhooks webhook
JOIN agents_webhook_deliveries delivery
  ON delivery.webhook_id = webhook.id AND delivery.status = 'failed'
 AND delivery.created_at >= :since AND delivery.created_at >= webhook.enabled_at
 AND (webhook.delivered_at IS NULL OR delivery.created_at > webhook.delivered_at)
WHERE webhook.id = :id AND webhook.is_enabled = 1
GROUP BY webhook.id, webhook.max_failures, webhook.tenant_id;

-- name: webhook_disabled_count
SELECT count(*) FROM agents_webhooks
WHERE is_enabled = 0 AND disabled_for IN ('max_failures_exceeded', 'gone');

-- name: webhook_disabled_newest
SELECT id, tenant_id, owner, disabled_for FROM agents_webhooks
WHERE is_enabled = 0 AND disabled_for IN ('max_failures_exceeded', 'gone')
ORDER BY disabled_at DESC, id DESC LIMIT 1;

-- name: webhook_subscribe
INSERT INTO agents_subscriptions (webhook_id, topic, tenant_id, created_at)
VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING;

-- name: webhook_unsubscribe
DELETE FROM agents_subscriptions WHERE webhook_id = ? AND topic = ?;

-- name: webhook_unsubscribe_all
DELETE FROM agents_subscriptions WHERE webhook_id = ?;

-- name: webhook_topics
SELECT topic FROM agents_subscriptions WHERE webhook_id = ? ORDER BY topic;

-- name: webhook_subscribers
SELECT webhook.id, webhook.is_ordered
FROM agents_subscriptions subscription
JOIN agents_webhooks webhook ON webhook.id = subscription.webhook_id AND webhook.is_enabled = 1
WHERE subscription.tenant_id = ? AND subscription.topic = ?
ORDER BY webhook.id;

-- name: webhook_any_subscriber
SELECT 1 FROM agents_subscriptions WHERE topic = '*' OR topic LIKE ? LIMIT 1;

-- name: delivery_put
INSERT INTO agents_webhook_deliveries (
    id, tenant_id, webhook_id, job_id, n, attempt, waits, message_id, topic, person, payload,
    status, status_code, latency_ms, response_body, error_message, created_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET
    status = excluded.status, status_code = excluded.status_code,
    latency_ms = excluded.latency_ms, response_body = excluded.response_body,
    error_message = excluded.error_message, created_at = excluded.created_at;

-- name: delivery_last
SELECT n, attempt, waits, status, status_code, latency_ms FROM agents_webhook_deliveries
WHERE job_id = ? ORDER BY n DESC LIMIT 1;

-- name: delivery_get
SELECT id, tenant_id, webhook_id, job_id, n, message_id, topic, status, status_code, latency_ms,
       response_body, error_message, created_at
FROM agents_webhook_deliveries WHERE id = ?;

-- name: delivery_list
SELECT id, tenant_id, webhook_id, job_id, n, message_id, topic, status, status_code, latency_ms,
       response_body, error_message, created_at
FROM agents_webhook_deliveries
WHERE webhook_id = :webhook_id AND created_at < :before
  AND (CAST(:status AS TEXT) IS NULL OR status = :status)
ORDER BY created_at DESC, id DESC LIMIT :most;

-- name: delivery_message
-- The message of a delivery, which its job's first request holds.
SELECT opening.webhook_id, opening.message_id, opening.topic, opening.payload, webhook.is_ordered,
       webhook.tenant_id, opening.person
FROM agents_webhook_deliveries delivery
JOIN agents_webhook_deliveries opening ON opening.job_id = delivery.job_id AND opening.n = 1
JOIN agents_webhooks webhook ON webhook.id = opening.webhook_id
WHERE delivery.id = ?;

-- name: delivery_span
-- Messages of a span, each once, oldest first: all, or those that never arrived; with the job that
-- tried last.
SELECT opening.message_id, min(opening.id), (
    SELECT latest.job_id FROM agents_webhook_deliveries latest
    WHERE latest.webhook_id = :webhook_id AND latest.message_id = opening.message_id
    ORDER BY latest.created_at DESC, latest.id DESC LIMIT 1)
FROM agents_webhook_deliveries opening
WHERE opening.webhook_id = :webhook_id AND opening.n = 1
  AND opening.created_at >= :since AND opening.created_at < :until
  AND (:whole = 1 OR NOT EXISTS (
      SELECT 1 FROM agents_webhook_deliveries good
      WHERE good.webhook_id = opening.webhook_id AND good.message_id = opening.message_id
        AND good.status = 'success' AND good.created_at >= opening.created_at))
  AND opening.message_id > :after
GROUP BY opening.message_id ORDER BY opening.message_id LIMIT :most;

-- name: delivery_figures
SELECT status, count(*), avg(latency_ms), max(created_at)
FROM agents_webhook_deliveries WHERE webhook_id = ? AND created_at >= ? GROUP BY status;

-- name: delivery_latency
SELECT latency_ms FROM agents_webhook_deliveries
WHERE webhook_id = :webhook_id AND created_at >= :since AND latency_ms IS NOT NULL
  AND status = 'success'
ORDER BY latency_ms LIMIT 1 OFFSET :skipped;

-- name: delivery_prune
DELETE FROM agents_webhook_deliveries WHERE id IN (
    SELECT id FROM agents_webhook_deliveries WHERE created_at < ? ORDER BY created_at LIMIT 5000
);

-- name: slack_newest
SELECT newest FROM agents_slack_channels WHERE tenant_id = ? AND connection = ? AND channel = ?;

-- name: slack_synced
INSERT INTO agents_slack_channels (tenant_id, connection, channel, newest, messages, synced_at)
VALUES (:tenant_id, :connection, :channel, :newest, :messages, :now)
ON CONFLICT (tenant_id, connection, channel) DO UPDATE SET
    messages = agents_slack_channels.messages + CASE
        WHEN agents_slack_channels.newest < excluded.newest THEN excluded.messages ELSE 0 END,
    newest = CASE WHEN agents_slack_channels.newest < excluded.newest
        THEN excluded.newest ELSE agents_slack_channels.newest END,
    synced_at = excluded.synced_at;
