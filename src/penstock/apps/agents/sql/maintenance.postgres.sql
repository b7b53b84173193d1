-- name: hold_quota
SELECT pg_advisory_xact_lock(hashtextextended(CAST(? AS TEXT) || chr(10) || CAST(? AS TEXT), 17));
