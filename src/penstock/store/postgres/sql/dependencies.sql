-- A query `x_all` does for a list of rows what `x` does for one; each row is an array of its values.

-- name: any_open_edge
SELECT 1 FROM job_dependencies WHERE outcome IS NULL LIMIT 1;

-- name: insert_edge
-- Two jobs that both came back may stand in line behind each other a second time.
INSERT INTO job_dependencies (
    child_id, parent_id, kind, argument, position, condition, on_failure, on_requeue, created_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, at(?))
ON CONFLICT (child_id, parent_id, kind, argument) DO UPDATE
SET outcome = NULL, closed_at = NULL, created_at = excluded.created_at;

-- name: insert_edge_all
INSERT INTO job_dependencies (
    child_id, parent_id, kind, argument, position, condition, on_failure, on_requeue, created_at
)
SELECT one ->> 0, one ->> 1, one ->> 2, one ->> 3, (one ->> 4)::int, one ->> 5, one ->> 6,
    one ->> 7, at((one ->> 8)::bigint)
FROM jsonb_array_elements(?::jsonb) AS one
ON CONFLICT (child_id, parent_id, kind, argument) DO UPDATE
SET outcome = NULL, closed_at = NULL, created_at = excluded.created_at;

-- name: statuses
-- The parents of new edges: none of them can end before the edges to it are committed.
SELECT id, status FROM jobs WHERE id = ANY(?::text[]) ORDER BY id FOR SHARE;

-- name: linkable
SELECT status, ms(queued_at) FROM jobs WHERE id = ? FOR UPDATE;

-- name: edges_of
SELECT parent_id, kind, argument FROM job_dependencies WHERE child_id = ?;

-- name: open_parents
-- Edges that a requeue may open again count too, or two jobs could come to wait for each other.
SELECT parent_id FROM job_dependencies
WHERE child_id = ?
  AND (outcome IS NULL OR (outcome IN ('cancelled', 'dead') AND on_requeue = 'restore'));

-- name: open_edges
-- Never part of the statement that ends the parents: that one began before it waited for those
-- who add edges to them, and would not see these edges. The parents are read apart: in a join, old
-- statistics may have all jobs read for every edge.
WITH parent AS MATERIALIZED (SELECT id, status FROM jobs WHERE id = ANY(:parents::text[])),
edge AS MATERIALIZED (
    SELECT child_id, parent_id, kind, argument, condition, on_failure FROM job_dependencies
    WHERE parent_id = ANY(:parents::text[]) AND outcome IS NULL
    ORDER BY child_id, parent_id, kind, argument
    FOR UPDATE
)
SELECT edge.*, parent.status FROM edge JOIN parent ON parent.id = edge.parent_id
ORDER BY child_id, parent_id, kind, argument;

-- name: result_of
SELECT result::text FROM jobs WHERE id = ?;

-- name: close_edge
UPDATE job_dependencies SET outcome = ?, result = ?::json, closed_at = at(?)
WHERE child_id = ? AND parent_id = ? AND kind = ? AND argument = ? AND outcome IS NULL;

-- name: close_edge_all
UPDATE job_dependencies AS edge
SET outcome = one ->> 0, result = (one ->> 1)::json, closed_at = at((one ->> 2)::bigint)
FROM jsonb_array_elements(?::jsonb) AS one
WHERE edge.child_id = one ->> 3 AND edge.parent_id = one ->> 4 AND edge.kind = one ->> 5
  AND edge.argument = one ->> 6 AND edge.outcome IS NULL;

-- name: lower_waiting
UPDATE jobs SET waiting_on = waiting_on - ?::int, updated_at = at(?) WHERE id = ?;

-- name: lower_waiting_all
UPDATE jobs
SET waiting_on = waiting_on - (one ->> 0)::int, updated_at = at((one ->> 1)::bigint)
FROM jsonb_array_elements(?::jsonb) AS one WHERE jobs.id = one ->> 2;

-- name: raise_waiting
UPDATE jobs SET waiting_on = waiting_on + ?::int, updated_at = at(?) WHERE id = ?;

-- name: free_with_inputs
WITH given AS MATERIALIZED (
    SELECT DISTINCT child_id FROM job_dependencies
    WHERE child_id = ANY(?::text[]) AND kind = 'data' AND result IS NOT NULL
)
SELECT id, payload::text FROM jobs
WHERE id = ANY(ARRAY(SELECT child_id FROM given)) AND waiting_on = 0;

-- name: inputs
SELECT child_id, argument, position, result::text FROM job_dependencies
WHERE child_id = ANY(?::text[]) AND kind = 'data' AND result IS NOT NULL;

-- name: inputs_passed
-- While a parent may come back, the results of the others are kept: they go into one list with its.
UPDATE job_dependencies AS edge SET result = NULL
WHERE edge.child_id = ANY(?::text[]) AND edge.kind = 'data'
  AND NOT EXISTS (
      SELECT 1 FROM job_dependencies AS other
      WHERE other.child_id = edge.child_id AND other.outcome <> 'satisfied');

-- name: set_payload
UPDATE jobs SET payload = ?::json WHERE id = ?;

-- name: set_payload_all
UPDATE jobs SET payload = (one ->> 0)::json
FROM jsonb_array_elements(?::jsonb) AS one WHERE jobs.id = one ->> 1;

-- name: cancel_dependent
UPDATE jobs
SET live = false, status = 'cancelled', error = :error, error_details = :details::json,
    completed_at = at(:now), updated_at = at(:now)
WHERE live AND id = ANY(:ids::text[]) AND status IN ({from cancel})
RETURNING id, type, queue, tenant_id, attempts;

-- name: bury_dependent
UPDATE jobs
SET live = false, status = 'dead_letter', error = :error, error_details = :details::json,
    completed_at = at(:now), failed_at = at(:now), updated_at = at(:now)
WHERE live AND id = ANY(:ids::text[]) AND status IN ({from orphan})
RETURNING id, type, queue, tenant_id, attempts;

-- name: of_other_tenants
-- Of pairs of a child and a parent, the children whose parent belongs to somebody else.
SELECT child.id FROM jsonb_array_elements(?::jsonb) AS pair
JOIN jobs AS child ON child.id = pair ->> 0
JOIN jobs AS parent ON parent.id = pair ->> 1
WHERE child.tenant_id <> parent.tenant_id;

-- name: overdue_edges
SELECT DISTINCT edge.parent_id FROM job_dependencies AS edge
JOIN jobs_ended AS parent ON parent.id = edge.parent_id
WHERE edge.outcome IS NULL
LIMIT ?;

-- name: lost_edges
SELECT child_id, parent_id, kind, argument FROM job_dependencies AS edge
WHERE outcome IS NULL AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = edge.parent_id)
LIMIT ?
FOR UPDATE SKIP LOCKED;

-- name: reopen_edges
-- A child that somebody requeued by hand, and that has been in the queue since, is left alone.
WITH parent AS (SELECT ?::text AS id),
child AS MATERIALIZED (
    SELECT id FROM jobs
    WHERE id IN (
          SELECT child_id FROM job_dependencies JOIN parent ON parent.id = parent_id
          WHERE outcome IN ('cancelled', 'dead') AND on_requeue = 'restore')
      AND (status IN ({from requeue}) OR (status IN ('pending', 'paused') AND queued_at IS NULL))
    ORDER BY id FOR UPDATE
)
UPDATE job_dependencies AS edge SET outcome = NULL, result = NULL, closed_at = NULL
FROM parent, child
WHERE edge.parent_id = parent.id AND edge.child_id = child.id
  AND edge.outcome IN ('cancelled', 'dead') AND edge.on_requeue = 'restore'
RETURNING edge.child_id;

-- name: restorable
-- Only a child that ended because of a parent, and whose other parents are not against it.
SELECT 1 FROM jobs_ended
WHERE id = :id AND status IN ({from requeue})
  AND error_details ->> 'code' = 'ParentFailed'
  AND NOT EXISTS (
      SELECT 1 FROM job_dependencies
      WHERE child_id = :id AND outcome IN ('cancelled', 'dead', 'not_met'));

-- name: parents_of
SELECT edge.child_id, edge.parent_id, edge.kind, edge.condition, edge.argument, edge.position,
    edge.on_failure, edge.on_requeue, parent.type, parent.status, child.type, child.status,
    edge.outcome, ms(edge.closed_at)
FROM job_dependencies AS edge
LEFT JOIN jobs AS parent ON parent.id = edge.parent_id
LEFT JOIN jobs AS child ON child.id = edge.child_id
WHERE edge.child_id = ? ORDER BY edge.outcome IS NOT NULL, edge.parent_id LIMIT ?;

-- name: children_of
SELECT edge.child_id, edge.parent_id, edge.kind, edge.condition, edge.argument, edge.position,
    edge.on_failure, edge.on_requeue, parent.type, parent.status, child.type, child.status,
    edge.outcome, ms(edge.closed_at)
FROM job_dependencies AS edge
LEFT JOIN jobs AS parent ON parent.id = edge.parent_id
LEFT JOIN jobs AS child ON child.id = edge.child_id
WHERE edge.parent_id = ? ORDER BY edge.outcome IS NOT NULL, edge.child_id LIMIT ?;

-- name: delete_edges
DELETE FROM job_dependencies WHERE child_id = ANY(?::text[]);

-- name: any_line
SELECT 1 FROM order_lines LIMIT 1;

-- name: lines_of
SELECT DISTINCT tenant_id, order_key FROM jobs
WHERE id = ANY(?::text[]) AND order_key IS NOT NULL ORDER BY tenant_id, order_key;

-- name: last_in_line
SELECT last_id FROM order_lines WHERE tenant_id = ? AND order_key = ?;

-- name: join_line
INSERT INTO order_lines (tenant_id, order_key, last_id) VALUES (?, ?, ?)
ON CONFLICT (tenant_id, order_key) DO UPDATE SET last_id = excluded.last_id;

-- name: leave_line
DELETE FROM order_lines WHERE last_id = ANY(?::text[]);

-- name: end_line_with
UPDATE order_lines SET last_id = ? WHERE last_id = ?;

-- name: step_out_of_line
DELETE FROM job_dependencies
WHERE child_id = ANY(?::text[]) AND kind = 'order' AND outcome IS NULL
RETURNING child_id, parent_id;

-- name: due_ordered
-- Jobs that another claim has begun to line up are waited for: those behind them must not join
-- the line before them.
SELECT id, tenant_id, order_key FROM jobs_live
WHERE status IN ({from stage}) AND waiting_on = 0 AND scheduled_at <= at(?)
  AND order_key IS NOT NULL AND queued_at IS NULL
ORDER BY scheduled_at, seq LIMIT ?
FOR UPDATE;

-- name: stage_first_in_line
UPDATE jobs_live
SET status = 'queued', queued_at = at(:now), updated_at = at(:now),
    rank = ms(scheduled_at) + (priority - 1) * :priority_weight::bigint
WHERE id = :id AND status IN ({from stage});

-- name: stand_in_line
UPDATE jobs_live SET waiting_on = waiting_on + 1, queued_at = at(:now), updated_at = at(:now)
WHERE id = :id;
