-- name: hold_costs
-- Until the commit nobody else sets something aside.
SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || '.recorder_costs', 0));
