-- name: hold_quota
SELECT 1 WHERE ? <> ?;
