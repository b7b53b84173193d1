-- name: any_open_edge
SELECT 1 FROM job_dependencies WHERE outcome IS NULL LIMIT 1;

-- name: insert_edge
-- Two jobs that both came back may stand in line behind each other a second time.
INSERT INTO job_dependencies (
    child_id, parent_id, kind, argument, position, condition, on_failure, on_requeue, created_at
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (child_id, parent_id, kind, argument) DO UPDATE
SET outcome = NULL, closed_at = NULL, created_at = excluded.created_at;

-- name: statuses
SELECT id, status FROM jobs WHERE id IN (SELECT value FROM json_each(?));

-- name: linkable
SELECT status, queued_at FROM jobs WHERE id = ?;

-- name: edges_of
SELECT parent_id, kind, argument FROM job_dependencies WHERE child_id = ?;

-- name: open_parents
-- Edges that a requeue may open again count too, or two jobs could come to wait for each other.
SELECT parent_id FROM job_dependencies
WHERE child_id = ?
  AND (outcome IS NULL OR (outcome IN ('cancelled', 'dead') AND on_requeue = 'restore'));

-- name: open_edges
-- Read with the write lock held: no parent can end, and no edge be added, between this and its end.
SELECT edge.child_id, edge.parent_id, edge.kind, edge.argument, edge.condition, edge.on_failure,
    parent.status
FROM json_each(:parents) AS ended
JOIN job_dependencies AS edge ON edge.parent_id = ended.value AND edge.outcome IS NULL
JOIN jobs AS parent ON parent.id = edge.parent_id;

-- name: result_of
SELECT result FROM jobs WHERE id = ?;

-- name: close_edge
UPDATE job_dependencies SET outcome = ?, result = ?, closed_at = ?
WHERE child_id = ? AND parent_id = ? AND kind = ? AND argument = ? AND outcome IS NULL;

-- name: lower_waiting
UPDATE jobs SET waiting_on = waiting_on - ?, updated_at = ? WHERE id = ?;

-- name: raise_waiting
UPDATE jobs SET waiting_on = waiting_on + ?, updated_at = ? WHERE id = ?;

-- name: free_with_inputs
SELECT id, payload FROM jobs
WHERE id IN (SELECT value FROM json_each(?)) AND waiting_on = 0
  AND EXISTS (
      SELECT 1 FROM job_dependencies
      WHERE child_id = jobs.id AND kind = 'data' AND result IS NOT NULL);

-- name: inputs
SELECT child_id, argument, position, result FROM job_dependencies
WHERE child_id IN (SELECT value FROM json_each(?)) AND kind = 'data' AND result IS NOT NULL;

-- name: inputs_passed
-- While a parent may come back, the results of the others are kept: they go into one list with its.
UPDATE job_dependencies AS edge SET result = NULL
WHERE edge.child_id IN (SELECT value FROM json_each(?)) AND kind = 'data'
  AND NOT EXISTS (
      SELECT 1 FROM job_dependencies AS other
      WHERE other.child_id = edge.child_id AND other.outcome <> 'satisfied');

-- name: set_payload
UPDATE jobs SET payload = ? WHERE id = ?;

-- name: cancel_dependent
UPDATE jobs
SET status = 'cancelled', error = :error, error_details = :details, completed_at = :now,
    updated_at = :now
WHERE id IN (SELECT value FROM json_each(:ids)) AND status IN ({from cancel})
RETURNING id, type, queue, tenant_id, attempts;

-- name: bury_dependent
UPDATE jobs
SET status = 'dead_letter', error = :error, error_details = :details, completed_at = :now,
    failed_at = :now, updated_at = :now
WHERE id IN (SELECT value FROM json_each(:ids)) AND status IN ({from orphan})
RETURNING id, type, queue, tenant_id, attempts;

-- name: of_other_tenants
-- Of pairs of a child and a parent, the children whose parent belongs to somebody else.
SELECT child.id FROM jsonb_each(?) AS pair
JOIN jobs AS child ON child.id = pair.value ->> 0
JOIN jobs AS parent ON parent.id = pair.value ->> 1
WHERE child.tenant_id <> parent.tenant_id;

-- name: overdue_edges
SELECT DISTINCT edge.parent_id FROM job_dependencies AS edge
JOIN jobs AS parent ON parent.id = edge.parent_id
WHERE edge.outcome IS NULL AND parent.status IN ('completed', 'cancelled', 'dead_letter')
LIMIT ?;

-- name: lost_edges
SELECT child_id, parent_id, kind, argument FROM job_dependencies AS edge
WHERE outcome IS NULL AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.id = edge.parent_id)
LIMIT ?;

-- name: reopen_edges
-- A child that somebody requeued by hand, and that has been in the queue since, is left alone.
UPDATE job_dependencies SET outcome = NULL, result = NULL, closed_at = NULL
WHERE parent_id = ? AND outcome IN ('cancelled', 'dead') AND on_requeue = 'restore'
  AND EXISTS (
      SELECT 1 FROM jobs
      WHERE id = child_id AND (status IN ({from requeue})
          OR (status IN ('pending', 'paused') AND queued_at IS NULL)))
RETURNING child_id;

-- name: restorable
-- Only a child that ended because of a parent, and whose other parents are not against it.
SELECT 1 FROM jobs
WHERE id = :id AND status IN ({from requeue})
  AND error_details ->> '$.code' = 'ParentFailed'
  AND NOT EXISTS (
      SELECT 1 FROM job_dependencies
      WHERE child_id = :id AND outcome IN ('cancelled', 'dead', 'not_met'));

-- name: parents_of
SELECT edge.child_id, edge.parent_id, edge.kind, edge.condition, edge.argument, edge.position,
    edge.on_failure, edge.on_requeue, parent.type, parent.status, child.type, child.status,
    edge.outcome, edge.closed_at
FROM job_dependencies AS edge
LEFT JOIN jobs AS parent ON parent.id = edge.parent_id
LEFT JOIN jobs AS child ON child.id = edge.child_id
WHERE edge.child_id = ? ORDER BY edge.outcome IS NOT NULL, edge.parent_id LIMIT ?;

-- name: children_of
SELECT edge.child_id, edge.parent_id, edge.kind, edge.condition, edge.argument, edge.position,
    edge.on_failure, edge.on_requeue, parent.type, parent.status, child.type, child.status,
    edge.outcome, edge.closed_at
FROM job_dependencies AS edge
LEFT JOIN jobs AS parent ON parent.id = edge.parent_id
LEFT JOIN jobs AS child ON child.id = edge.child_id
WHERE edge.parent_id = ? ORDER BY edge.outcome IS NOT NULL, edge.child_id LIMIT ?;

-- name: delete_edges
DELETE FROM job_dependencies WHERE child_id IN (SELECT value FROM json_each(?));

-- name: any_line
SELECT 1 FROM order_lines LIMIT 1;

-- name: lines_of
SELECT DISTINCT tenant_id, order_key FROM jobs
WHERE id IN (SELECT value FROM json_each(?)) AND order_key IS NOT NULL;

-- name: last_in_line
SELECT last_id FROM order_lines WHERE tenant_id = ? AND order_key = ?;

-- name: join_line
INSERT INTO order_lines (tenant_id, order_key, last_id) VALUES (?, ?, ?)
ON CONFLICT (tenant_id, order_key) DO UPDATE SET last_id = excluded.last_id;

-- name: leave_line
DELETE FROM order_lines WHERE last_id IN (SELECT value FROM json_each(?));

-- name: end_line_with
UPDATE order_lines SET last_id = ? WHERE last_id = ?;

-- name: step_out_of_line
DELETE FROM job_dependencies
WHERE child_id IN (SELECT value FROM json_each(?)) AND kind = 'order' AND outcome IS NULL
RETURNING child_id, parent_id;

-- name: due_ordered
SELECT id, tenant_id, order_key FROM jobs
WHERE status IN ({from stage}) AND waiting_on = 0 AND scheduled_at <= ?
  AND order_key IS NOT NULL AND queued_at IS NULL
ORDER BY scheduled_at, seq LIMIT ?;

-- name: stage_first_in_line
UPDATE jobs
SET status = 'queued', queued_at = :now, updated_at = :now,
    rank = scheduled_at + (priority - 1) * :priority_weight
WHERE id = :id AND status IN ({from stage});

-- name: stand_in_line
UPDATE jobs SET waiting_on = waiting_on + 1, queued_at = :now, updated_at = :now WHERE id = :id;
