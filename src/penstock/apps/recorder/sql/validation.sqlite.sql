-- name: validated
UPDATE recorder_messages SET validated = ?, metadata = json_patch(metadata, ?) WHERE id = ?;
