-- name: spent
-- What was spent or is set aside since a time, in all or for one conversation.
SELECT coalesce(sum(cost), 0), coalesce(sum(input_tokens + output_tokens), 0) FROM recorder_costs
WHERE created_at >= :since AND (CAST(:conversation_id AS TEXT) IS NULL
    OR conversation_id = :conversation_id);

-- name: reserve_cost
INSERT INTO recorder_costs (
    id, tenant_id, conversation_id, purpose, model, state, input_tokens, output_tokens, cost,
    created_at
)
VALUES (?, ?, ?, ?, ?, 'reserved', ?, ?, ?, ?);

-- name: settle_cost
UPDATE recorder_costs
SET state = ?, input_tokens = ?, output_tokens = ?, cost = ?, duration_ms = ?
WHERE id = ?;

-- name: own_costs
-- What our own models cost, by purpose and model.
SELECT purpose, model, count(*), coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0),
    coalesce(sum(cost), 0)
FROM recorder_costs
WHERE created_at >= :since AND created_at < :until
    AND (CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant)
GROUP BY purpose, model ORDER BY purpose, model;
