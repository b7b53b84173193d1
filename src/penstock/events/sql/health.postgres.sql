-- name: log_bytes
SELECT coalesce(sum(pg_total_relation_size(relid)), 0)::bigint
FROM pg_partition_tree('events_log');

-- name: log_file
-- What the server writes ahead is its own affair.
SELECT NULL::text;
