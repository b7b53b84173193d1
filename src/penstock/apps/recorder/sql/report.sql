-- What the sanitiser took out, by rule; NULL does not narrow.

-- name: caught
SELECT category, rule_id, detector, count(*), count(DISTINCT conversation_id), avg(confidence),
    max(created_at)
FROM recorder_redactions WHERE {part caught_where}
GROUP BY category, rule_id, detector ORDER BY count(*) DESC, rule_id, detector;

-- name: caught_by_day
SELECT created_at / 86400000, count(*) FROM recorder_redactions WHERE {part caught_where}
GROUP BY created_at / 86400000 ORDER BY 1;

-- part: caught_where
created_at >= :since
    AND (CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant)
    AND (CAST(:conversation_id AS TEXT) IS NULL OR conversation_id = :conversation_id)
