-- name: open_session
INSERT INTO agents_sessions (
    id, tenant_id, workspace_id, user_id, started_at, last_active_at, expires_at, status, turns,
    learned_turns, archive_id, restored_at, metadata
)
VALUES (:id, :tenant_id, :workspace_id, :user_id, :started_at, :last_active_at, :expires_at,
    :status, :turns, NULL, NULL, NULL, :metadata)
ON CONFLICT (id) DO NOTHING;

-- name: session
{part session}
WHERE id = :id AND (CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant);

-- name: sessions
-- The latest first; `before` is the place of the last one of the page before.
{part session}
WHERE (CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant)
    AND (CAST(:workspace AS TEXT) IS NULL OR workspace_id = :workspace)
    AND (CAST(:person AS TEXT) IS NULL OR user_id = :person)
    AND (CAST(:status AS TEXT) IS NULL OR status = :status)
    AND (started_at < :before_at OR (started_at = :before_at AND id < :before_id))
ORDER BY started_at DESC, id DESC
LIMIT :limit;

-- name: turns_of_session
SELECT n, role, content, skill_id, succeeded, at, metadata
FROM agents_turns WHERE session_id = ? AND n > ? ORDER BY n LIMIT ?;

-- name: hold_session
-- Keeps out whoever else adds to it until this transaction ends; how many turns it has.
UPDATE agents_sessions SET status = status WHERE id = :id
    AND (CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant)
RETURNING tenant_id, user_id, status, turns, last_active_at;

-- name: add_turn
-- One that is there already stays as it is.
INSERT INTO agents_turns (
    session_id, n, tenant_id, user_id, role, content, skill_id, succeeded, at, metadata
)
VALUES (:session_id, :n, :tenant_id, :user_id, :role, :content, :skill_id, :succeeded, :at,
    :metadata)
ON CONFLICT (session_id, n) DO NOTHING;

-- name: continue_session
UPDATE agents_sessions SET turns = :turns, last_active_at = :at WHERE id = :id;

-- name: end_session
UPDATE agents_sessions SET status = :status WHERE id = :id AND status = 'active';

-- name: sessions_to_expire
SELECT id, tenant_id, workspace_id FROM agents_sessions
WHERE status = 'active' AND (last_active_at < :quiet_since OR expires_at <= :now)
    AND (CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant)
ORDER BY tenant_id, id
LIMIT :limit;

-- name: drop_session
DELETE FROM agents_sessions WHERE id = ?;

-- name: drop_turns
DELETE FROM agents_turns WHERE session_id = ?;

-- name: sessions_to_archive
{part session}
WHERE status IN ('closed', 'expired') AND coalesce(restored_at, last_active_at) < :before
    AND (CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant)
ORDER BY tenant_id, id
LIMIT :limit;

-- name: session_to_archive
{part session}
WHERE id = :id AND status IN ('closed', 'expired')
    AND (CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant);

-- name: put_session_away
-- Only as it was when it was read: what came in meanwhile is not in the file.
UPDATE agents_sessions SET status = 'archived', archive_id = :archive_id, restored_at = NULL
WHERE id = :id AND status = :status AND turns = :turns AND last_active_at = :last_active_at;

-- name: restore_session
UPDATE agents_sessions SET status = :status, archive_id = NULL, restored_at = :now
WHERE id = :id AND archive_id = :archive_id;

-- name: begin_archive
-- A job that goes on where it was killed finds its row.
INSERT INTO agents_archives (
    id, tenant_id, state, job_id, file, sha256, sessions, turns, bytes, created_at
)
VALUES (:id, :tenant_id, 'writing', :job_id, :file, '', 0, 0, 0, :now)
ON CONFLICT (id) DO UPDATE SET tenant_id = excluded.tenant_id, created_at = excluded.created_at
WHERE agents_archives.state = 'writing';

-- name: finish_archive
UPDATE agents_archives SET state = 'whole', sha256 = :sha256, sessions = :sessions,
    turns = :turns, bytes = :bytes
WHERE id = :id AND state = 'writing';

-- name: replace_archive
UPDATE agents_archives SET file = :file, sha256 = :sha256, sessions = :sessions, turns = :turns,
    bytes = :bytes
WHERE id = :id AND file = :before;

-- name: drop_archive
DELETE FROM agents_archives WHERE id = ?;

-- name: archive
{part archive} WHERE id = ?;

-- name: archives_of_job
{part archive} WHERE job_id = ? ORDER BY id;

-- name: archives
{part archive}
WHERE (CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant) AND id < :before
ORDER BY id DESC LIMIT :limit;

-- name: archives_of
-- All of a tenant, or of all; those that were never finished as well.
{part archive} WHERE CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant ORDER BY id;

-- name: abandoned_archives
{part archive} WHERE state = 'writing' AND created_at < ? ORDER BY id;

-- part: session
SELECT id, tenant_id, workspace_id, user_id, started_at, last_active_at, expires_at, status, turns,
    archive_id, restored_at, metadata
FROM agents_sessions

-- part: archive
SELECT id, tenant_id, state, job_id, file, sha256, sessions, turns, bytes, created_at
FROM agents_archives
