-- name: add
INSERT INTO outbox_jobs (id, tenant_id, created_by, document, created_at)
VALUES (?, ?, ?, ?, ?);

-- name: page
SELECT id, document FROM outbox_jobs WHERE id > ? ORDER BY id LIMIT ?;

-- name: remove
DELETE FROM outbox_jobs WHERE id = ?;

-- name: note_error
UPDATE outbox_jobs SET tries = tries + 1, error = ? WHERE id = ?;

-- name: one
SELECT id, document FROM outbox_jobs WHERE id = ?;

-- name: waiting
SELECT id, created_at, tries, error FROM outbox_jobs ORDER BY id LIMIT 1000;
