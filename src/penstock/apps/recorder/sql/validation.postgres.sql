-- name: validated
UPDATE recorder_messages SET validated = ?, metadata = (metadata::jsonb || ?::jsonb)::text
WHERE id = ?;
