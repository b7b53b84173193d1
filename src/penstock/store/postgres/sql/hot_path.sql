-- The functions behind these are in functions/: their plans are kept by the session.

-- name: claim_quietly
-- At least one row, which tells of the claim itself; without a job if there was none. Without a
-- time, it is the server's.
SELECT needs, due, staged, walked_to, lanes, walk_us, leased.*
FROM (SELECT coalesce(:now::bigint, clock_ms()) AS now) AS moment
CROSS JOIN LATERAL choose_jobs(
    :types::text[], :queues::text[], :max_priority::integer, :limit::integer, :at_most::json,
    :last_tenant, :walked_to::json,
    (SELECT array_agg(known) FROM json_populate_recordset(NULL::lane, :known::json) AS known),
    :tidy::boolean, :stage::integer, moment.now)
LEFT JOIN LATERAL lease(ids, :owner, :start::integer, :lease_ms::bigint, :type_lease_ms::json,
    moment.now, coalesce(:monotonic::bigint, moment.now)) AS leased ON true;

-- name: claim_chosen
SELECT leased.* FROM lease(lock_queued(:ids::text[], :now::bigint), :owner, :start::integer,
    :lease_ms::bigint, '{}'::json, :now::bigint, :monotonic::bigint) AS leased;

-- name: complete_all
SELECT complete_all(:ended::jsonb, :owner, :sums::jsonb, :now::bigint);
