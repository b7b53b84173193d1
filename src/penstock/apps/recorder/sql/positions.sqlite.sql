-- name: captured_among
SELECT event_id, tenant_id FROM events_log
WHERE event_id IN (SELECT value FROM json_each(?));
