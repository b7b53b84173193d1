-- name: search
SELECT r.conversation_id, r.id, r.role, r.created_at, r.content, r.platform, c.title
FROM recorder_words w JOIN recorder_messages r ON r.n = w.rowid
    LEFT JOIN recorder_conversations c ON c.id = r.conversation_id
WHERE w.recorder_words MATCH :words
    AND (:tenant IS NULL OR r.tenant_id = :tenant)
    AND (:conversation_id IS NULL OR r.conversation_id = :conversation_id)
ORDER BY w.rowid DESC LIMIT :limit;

-- name: tool_percentiles
SELECT t.name, count(*), percentile_cont(t.duration_ms, 0.5), percentile_cont(t.duration_ms, 0.95),
    percentile_cont(t.duration_ms, 0.99)
FROM recorder_tools t JOIN recorder_conversations c ON c.id = t.conversation_id
WHERE {part wanted} AND {part within} AND t.duration_ms IS NOT NULL
GROUP BY t.name ORDER BY t.name;

-- name: response_percentiles
SELECT count(*), percentile_cont(t.response_ms, 0.5), percentile_cont(t.response_ms, 0.95),
    percentile_cont(t.response_ms, 0.99)
FROM recorder_turns t JOIN recorder_conversations c ON c.id = t.conversation_id
WHERE {part wanted} AND {part within} AND t.response_ms IS NOT NULL;
