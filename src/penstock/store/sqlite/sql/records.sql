-- name: record
SELECT kind, name, document, revision, updated_at, expires_at FROM records
WHERE kind = :kind AND name = :name AND (expires_at IS NULL OR expires_at > :now);

-- name: records
SELECT kind, name, document, revision, updated_at, expires_at FROM records
WHERE kind = :kind AND name > :after AND (expires_at IS NULL OR expires_at > :now)
ORDER BY name LIMIT :limit;

-- name: put_record
INSERT INTO records (kind, name, document, revision, updated_at, expires_at)
VALUES (:kind, :name, :document, :revision, :now, :expires_at)
ON CONFLICT (kind, name) DO UPDATE
SET document = excluded.document, revision = excluded.revision, updated_at = excluded.updated_at,
    expires_at = excluded.expires_at;

-- name: remove_record
DELETE FROM records WHERE kind = :kind AND name = :name;

-- name: drop_expired_records
DELETE FROM records WHERE expires_at IS NOT NULL AND expires_at <= ?;
