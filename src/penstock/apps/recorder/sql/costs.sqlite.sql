-- name: hold_costs
-- One writer at a time has the file.
SELECT 1;
