-- What goes when a session is deleted, and what tells that nothing is left of it.

-- name: sessions_chosen
-- By our id or the assistant's own; one whose conversation was not derived yet has messages.
SELECT id, tenant_id, platform, session_id, project, last_at, title
FROM recorder_conversations
WHERE (id = :name OR session_id = :name) AND {part own}
UNION ALL
SELECT conversation_id, tenant_id, platform, session_id, CAST(NULL AS TEXT), max(created_at), ''
FROM recorder_messages m
WHERE (conversation_id = :name OR session_id = :name) AND {part own}
    AND NOT EXISTS (SELECT 1 FROM recorder_conversations c WHERE c.id = m.conversation_id)
GROUP BY conversation_id, tenant_id, platform, session_id;

-- name: sessions_within
SELECT id, tenant_id, platform, session_id, project, last_at, title
FROM recorder_conversations
WHERE (last_at > :after_at OR (last_at = :after_at AND id > :after_id)) AND last_at < :until
    AND (CAST(:project AS TEXT) IS NULL OR project = :project) AND {part own}
ORDER BY last_at, id LIMIT :limit;

-- name: published_of
-- Learnings that others may hold, and what is on its way to them.
SELECT u.learning_id, u.status, u.ipfs_cid
FROM recorder_uploads u JOIN recorder_learnings l ON l.id = u.learning_id
WHERE l.conversation_id = :id AND u.ipfs_cid IS NOT NULL
    AND NOT EXISTS (SELECT 1 FROM recorder_revocations r WHERE r.learning_id = u.learning_id)
ORDER BY u.learning_id;

-- name: delete_revocations
DELETE FROM recorder_revocations
WHERE learning_id IN (SELECT id FROM recorder_learnings WHERE conversation_id = :id);

-- name: delete_uploads
DELETE FROM recorder_uploads
WHERE learning_id IN (SELECT id FROM recorder_learnings WHERE conversation_id = :id);

-- name: delete_learnings
DELETE FROM recorder_learnings WHERE conversation_id = :id;

-- name: delete_extractions
DELETE FROM recorder_extractions WHERE conversation_id = :id;

-- name: delete_due
DELETE FROM recorder_due WHERE conversation_id = :id;

-- name: delete_costs
-- What our own models cost stays in the sums; for which session does not.
UPDATE recorder_costs SET conversation_id = NULL, person = NULL WHERE conversation_id = :id;

-- name: delete_redactions
DELETE FROM recorder_redactions WHERE conversation_id = :id;

-- name: delete_messages
DELETE FROM recorder_messages WHERE conversation_id = :id;

-- name: delete_rule
DELETE FROM recorder_retention WHERE scope = 'session' AND name = :id;

-- name: left_of_session
SELECT 'events_log', count(*) FROM events_log
WHERE session_id = :session_id AND platform = :platform AND tenant_id = :tenant_id
UNION ALL SELECT 'recorder_messages', count(*) FROM recorder_messages WHERE conversation_id = :id
UNION ALL SELECT 'recorder_redactions', count(*) FROM recorder_redactions
WHERE conversation_id = :id
UNION ALL SELECT 'recorder_conversations', count(*) FROM recorder_conversations WHERE id = :id
UNION ALL SELECT 'recorder_states', count(*) FROM recorder_states WHERE conversation_id = :id
UNION ALL SELECT 'recorder_turns', count(*) FROM recorder_turns WHERE conversation_id = :id
UNION ALL SELECT 'recorder_tools', count(*) FROM recorder_tools WHERE conversation_id = :id
UNION ALL SELECT 'recorder_changes', count(*) FROM recorder_changes WHERE conversation_id = :id
UNION ALL SELECT 'recorder_entries', count(*) FROM recorder_entries WHERE conversation_id = :id
UNION ALL SELECT 'recorder_commits', count(*) FROM recorder_commits WHERE conversation_id = :id
UNION ALL SELECT 'recorder_spent', count(*) FROM recorder_spent WHERE conversation_id = :id
UNION ALL SELECT 'recorder_metrics', count(*) FROM recorder_metrics WHERE conversation_id = :id
UNION ALL SELECT 'recorder_insights', count(*) FROM recorder_insights WHERE conversation_id = :id
UNION ALL SELECT 'recorder_learnings', count(*) FROM recorder_learnings WHERE conversation_id = :id
UNION ALL SELECT 'recorder_uploads', count(*) FROM recorder_uploads
WHERE learning_id IN (SELECT id FROM recorder_learnings WHERE conversation_id = :id)
UNION ALL SELECT 'recorder_extractions', count(*) FROM recorder_extractions
WHERE conversation_id = :id
UNION ALL SELECT 'recorder_due', count(*) FROM recorder_due WHERE conversation_id = :id
UNION ALL SELECT 'recorder_costs', count(*) FROM recorder_costs WHERE conversation_id = :id;

-- name: redactions_of
SELECT id, message_id, event_id, category, rule_id, original_snippet_hash, replacement, detector,
    confidence, created_at
FROM recorder_redactions WHERE conversation_id = :id ORDER BY created_at, id;

-- name: put_retention
INSERT INTO recorder_retention (tenant_id, scope, name, days, set_by, set_at)
VALUES (:tenant_id, :scope, :name, :days, :set_by, :set_at)
ON CONFLICT (tenant_id, scope, name) DO UPDATE
SET days = excluded.days, set_by = excluded.set_by, set_at = excluded.set_at;

-- name: drop_retention
DELETE FROM recorder_retention
WHERE tenant_id = :tenant_id AND scope = :scope AND name = :name;

-- name: retention
SELECT tenant_id, scope, name, days, set_by, set_at FROM recorder_retention
WHERE {part own} ORDER BY tenant_id, scope, name;

-- part: own
(CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant)
