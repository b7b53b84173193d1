-- name: search
SELECT r.conversation_id, r.id, r.role, r.created_at, r.content, r.platform, c.title
FROM recorder_messages r LEFT JOIN recorder_conversations c ON c.id = r.conversation_id
WHERE to_tsvector('simple', regexp_replace(left(r.content, 20000), '[!-/:-@[-`{-~]+', ' ', 'g'))
        @@ to_tsquery('simple', :words)
    AND (CAST(:tenant AS TEXT) IS NULL OR r.tenant_id = :tenant)
    AND (CAST(:conversation_id AS TEXT) IS NULL OR r.conversation_id = :conversation_id)
ORDER BY r.n DESC LIMIT :limit;

-- name: tool_percentiles
SELECT t.name, count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY t.duration_ms),
    percentile_cont(0.95) WITHIN GROUP (ORDER BY t.duration_ms),
    percentile_cont(0.99) WITHIN GROUP (ORDER BY t.duration_ms)
FROM recorder_tools t JOIN recorder_conversations c ON c.id = t.conversation_id
WHERE {part wanted} AND {part within} AND t.duration_ms IS NOT NULL
GROUP BY t.name ORDER BY t.name;

-- name: response_percentiles
SELECT count(*), percentile_cont(0.5) WITHIN GROUP (ORDER BY t.response_ms),
    percentile_cont(0.95) WITHIN GROUP (ORDER BY t.response_ms),
    percentile_cont(0.99) WITHIN GROUP (ORDER BY t.response_ms)
FROM recorder_turns t JOIN recorder_conversations c ON c.id = t.conversation_id
WHERE {part wanted} AND {part within} AND t.response_ms IS NOT NULL;
