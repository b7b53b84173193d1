-- name: memory_tenants
-- Each tenant that has memories, one step of the index for each.
WITH RECURSIVE tenants (tenant_id) AS (
    SELECT min(tenant_id) FROM agents_memories
    UNION ALL
    SELECT (SELECT min(tenant_id) FROM agents_memories WHERE tenant_id > tenants.tenant_id)
    FROM tenants WHERE tenants.tenant_id IS NOT NULL
)
SELECT tenant_id FROM tenants WHERE tenant_id IS NOT NULL LIMIT 200;
