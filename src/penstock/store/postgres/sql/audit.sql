-- name: last_entry
SELECT seq, ms(at), actor, action, subject, tenant_id, details, previous, hash FROM audit_log
ORDER BY seq DESC LIMIT 1;

-- name: append_entry
INSERT INTO audit_log (seq, at, actor, action, subject, tenant_id, details, previous, hash)
VALUES (?, at(?), ?, ?, ?, ?, ?, ?, ?);

-- name: entries_after
SELECT seq, ms(at), actor, action, subject, tenant_id, details, previous, hash FROM audit_log
WHERE seq > ? ORDER BY seq LIMIT ?;

-- part: entry_fits
(:actor::text IS NULL OR actor = :actor)
  AND (:action::text IS NULL OR action = :action
      OR starts_with(action, :action::text || '.'))
  AND (:subject::text IS NULL OR subject = :subject)
  AND (:tenant_id::text IS NULL OR tenant_id = :tenant_id)
  AND (:since::bigint IS NULL OR at >= at(:since)) AND (:until::bigint IS NULL OR at < at(:until))
  AND (:before::bigint IS NULL OR seq < :before)

-- name: find_entries
SELECT seq, ms(at), actor, action, subject, tenant_id, details, previous, hash FROM audit_log
WHERE {part entry_fits} ORDER BY seq DESC LIMIT :limit;

-- name: entries_of_subject
SELECT seq, ms(at), actor, action, subject, tenant_id, details, previous, hash FROM audit_log
WHERE subject = :subject AND {part entry_fits} ORDER BY seq DESC LIMIT :limit;

-- name: entries_of_actor
SELECT seq, ms(at), actor, action, subject, tenant_id, details, previous, hash FROM audit_log
WHERE actor = :actor AND {part entry_fits} ORDER BY seq DESC LIMIT :limit;

-- name: entries_of_tenant
SELECT seq, ms(at), actor, action, subject, tenant_id, details, previous, hash FROM audit_log
WHERE tenant_id = :tenant_id AND {part entry_fits} ORDER BY seq DESC LIMIT :limit;
