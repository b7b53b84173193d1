-- name: lock
-- Until the commit: who reads by sequence never passes one that commits later.
SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || '.events_log', 0));
