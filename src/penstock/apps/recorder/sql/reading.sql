-- name: sessions
{part session} WHERE {part wanted} AND c.last_at >= :since AND c.last_at < :until
    AND (c.last_at < :before_at OR (c.last_at = :before_at AND c.id < :before_id))
    AND (CAST(:status AS TEXT) IS NULL OR :status = CASE
        WHEN c.ended_at IS NOT NULL THEN 'complete'
        WHEN c.last_at >= :quiet_at THEN 'active' ELSE 'quiet' END)
ORDER BY c.last_at DESC, c.id DESC LIMIT :limit;

-- name: sessions_known_as
-- By the id of the conversation or of the session, or by how one of them begins.
{part session} WHERE (CAST(:tenant AS TEXT) IS NULL OR c.tenant_id = :tenant)
    AND ((c.id >= :known_as AND c.id < :beyond)
        OR (c.session_id >= :known_as AND c.session_id < :beyond))
ORDER BY c.id LIMIT 50;

-- name: sessions_of_commit
{part session} JOIN recorder_commits o ON o.conversation_id = c.id
WHERE (CAST(:tenant AS TEXT) IS NULL OR c.tenant_id = :tenant)
    AND o.hash >= :hash AND o.hash < :beyond
ORDER BY c.last_at DESC, c.id DESC LIMIT 50;

-- name: turns_of
SELECT n, status, started_at, ended_at, prompt, answer, model, input_tokens, output_tokens,
    cache_write, cache_write_1h, cache_read, response_ms, agent_id, branch
FROM recorder_turns WHERE conversation_id = ? ORDER BY n;

-- name: tools_of
SELECT n, turn, tool_use_id, name, summary, status, started_at, duration_ms, error, agent_id
FROM recorder_tools WHERE conversation_id = ? ORDER BY n;

-- name: changes_of
SELECT n, turn, tool, file_path, kind, added, removed, at, decision
FROM recorder_changes WHERE conversation_id = ? ORDER BY n;

-- name: entries_of
SELECT n, turn, kind, at, text FROM recorder_entries WHERE conversation_id = ? ORDER BY n;

-- name: commits_of
SELECT hash, branch, at, files, subject
FROM recorder_commits WHERE conversation_id = ? ORDER BY at, hash;

-- name: insights_of
SELECT kind, title, text, source, at
FROM recorder_insights WHERE conversation_id = ? ORDER BY kind, n;

-- name: spent_of
SELECT model, agent_id, input_tokens, output_tokens, cache_write, cache_write_1h, cache_read
FROM recorder_spent WHERE conversation_id = ? ORDER BY model, agent_id;

-- name: totals
SELECT count(*), coalesce(sum(turns), 0), coalesce(sum(tools), 0), coalesce(sum(failures), 0),
    coalesce(sum(interruptions), 0), coalesce(sum(input_tokens), 0),
    coalesce(sum(output_tokens), 0), coalesce(sum(cache_write), 0), coalesce(sum(cache_read), 0)
FROM recorder_conversations c WHERE {part wanted} AND {part within};

-- name: count_active
SELECT count(*) FROM recorder_conversations c WHERE {part wanted} AND c.last_at >= :since;

-- name: sums_of_metrics
SELECT coalesce(sum(m.changes), 0), coalesce(sum(m.direct), 0), coalesce(sum(m.rejected), 0),
    coalesce(sum(m.iterations), 0), coalesce(sum(m.decisions), 0), avg(m.productivity)
FROM recorder_conversations c JOIN recorder_metrics m ON m.conversation_id = c.id
WHERE {part wanted} AND {part within};

-- name: last_decisions
-- A window of so many decisions, the latest first.
SELECT d.decision
FROM recorder_changes d JOIN recorder_conversations c ON c.id = d.conversation_id
WHERE {part wanted} AND {part within} AND d.decision IS NOT NULL
ORDER BY d.at DESC, d.conversation_id, d.n DESC LIMIT :limit;

-- name: tool_counts
SELECT t.name, count(*)
FROM recorder_tools t JOIN recorder_conversations c ON c.id = t.conversation_id
WHERE {part wanted} AND {part within} GROUP BY t.name ORDER BY t.name;

-- name: spent_by_model
SELECT s.model, sum(s.input_tokens), sum(s.output_tokens), sum(s.cache_write),
    sum(s.cache_write_1h), sum(s.cache_read)
FROM recorder_spent s JOIN recorder_conversations c ON c.id = s.conversation_id
WHERE {part wanted} AND {part within} GROUP BY s.model ORDER BY s.model;

-- name: active_by_hour
-- Sessions in which a turn began, by the hour.
SELECT t.started_at / 3600000, count(DISTINCT c.id)
FROM recorder_turns t JOIN recorder_conversations c ON c.id = t.conversation_id
WHERE {part wanted} AND {part within} AND t.started_at >= :since AND t.started_at < :until
GROUP BY t.started_at / 3600000 ORDER BY t.started_at / 3600000;

-- name: by_day
SELECT c.started_at / 86400000, count(*), sum(c.turns), sum(c.tools), sum(c.failures),
    avg(m.productivity)
FROM recorder_conversations c LEFT JOIN recorder_metrics m ON m.conversation_id = c.id
WHERE {part wanted} AND {part within}
GROUP BY c.started_at / 86400000 ORDER BY c.started_at / 86400000;

-- name: decided_by_day
SELECT c.started_at / 86400000, sum(m.accepted), sum(m.decisions)
FROM recorder_conversations c JOIN recorder_metrics m ON m.conversation_id = c.id
WHERE {part wanted} AND {part within} GROUP BY c.started_at / 86400000;

-- name: spent_by_day
SELECT c.started_at / 86400000, s.model, sum(s.input_tokens), sum(s.output_tokens),
    sum(s.cache_write), sum(s.cache_write_1h), sum(s.cache_read)
FROM recorder_spent s JOIN recorder_conversations c ON c.id = s.conversation_id
WHERE {part wanted} AND {part within} GROUP BY c.started_at / 86400000, s.model;

-- part: session
SELECT c.id, c.platform, c.session_id, c.tenant_id, c.title, c.project, c.branch, c.model,
    c.started_at, c.last_at, c.ended_at, c.turns, c.tools, c.failures, c.changes,
    (SELECT count(*) FROM recorder_messages r WHERE r.conversation_id = c.id),
    (SELECT string_agg(s.model || ' ' || s.input_tokens || ' ' || s.output_tokens || ' '
        || s.cache_write || ' ' || s.cache_write_1h || ' ' || s.cache_read, '|')
     FROM recorder_spent s WHERE s.conversation_id = c.id),
    m.acceptance_rate, m.productivity
FROM recorder_conversations c LEFT JOIN recorder_metrics m ON m.conversation_id = c.id

-- part: wanted
(CAST(:tenant AS TEXT) IS NULL OR c.tenant_id = :tenant)
    AND (CAST(:platform AS TEXT) IS NULL OR c.platform = :platform)
    AND (CAST(:project AS TEXT) IS NULL OR c.project = :project)

-- part: within
c.last_at >= :since AND c.started_at < :until
