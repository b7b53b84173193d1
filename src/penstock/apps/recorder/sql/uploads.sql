-- name: withdraw_upload
-- What has not left the house goes no further.
DELETE FROM recorder_uploads WHERE status IN ('pending', 'failed') AND ipfs_cid IS NULL
    AND updated_at <= ? AND learning_id = ?;
