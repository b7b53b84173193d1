-- name: last_entry
SELECT seq, at, actor, action, subject, tenant_id, details, previous, hash FROM audit_log
ORDER BY seq DESC LIMIT 1;

-- name: append_entry
INSERT INTO audit_log (seq, at, actor, action, subject, tenant_id, details, previous, hash)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: entries_after
SELECT seq, at, actor, action, subject, tenant_id, details, previous, hash FROM audit_log
WHERE seq > ? ORDER BY seq LIMIT ?;

-- part: entry_fits
(:actor IS NULL OR actor = :actor)
  AND (:action IS NULL OR action = :action
      OR substr(action, 1, length(:action) + 1) = :action || '.')
  AND (:subject IS NULL OR subject = :subject)
  AND (:tenant_id IS NULL OR tenant_id = :tenant_id)
  AND (:since IS NULL OR at >= :since) AND (:until IS NULL OR at < :until)
  AND (:before IS NULL OR seq < :before)

-- name: find_entries
SELECT seq, at, actor, action, subject, tenant_id, details, previous, hash FROM audit_log
WHERE {part entry_fits} ORDER BY seq DESC LIMIT :limit;

-- name: entries_of_subject
SELECT seq, at, actor, action, subject, tenant_id, details, previous, hash FROM audit_log
WHERE subject = :subject AND {part entry_fits} ORDER BY seq DESC LIMIT :limit;

-- name: entries_of_actor
SELECT seq, at, actor, action, subject, tenant_id, details, previous, hash FROM audit_log
WHERE actor = :actor AND {part entry_fits} ORDER BY seq DESC LIMIT :limit;

-- name: entries_of_tenant
SELECT seq, at, actor, action, subject, tenant_id, details, previous, hash FROM audit_log
WHERE tenant_id = :tenant_id AND {part entry_fits} ORDER BY seq DESC LIMIT :limit;
