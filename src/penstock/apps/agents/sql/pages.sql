-- name: memory_tenants
-- Each tenant that has memories, one step of the index for each.
WITH RECURSIVE tenants (tenant_id) AS (
    SELECT min(tenant_id) FROM agents_memories
    UNION ALL
    SELECT (SELECT min(tenant_id) FROM agents_memories WHERE tenant_id > tenants.tenant_id)
    FROM tenants WHERE tenants.tenant_id IS NOT NULL
)
SELECT tenant_id FROM tenants WHERE tenant_id IS NOT NULL LIMIT 200;

-- name: quota_tenants
-- Tenants that have a quota of their own, or have used something; * stands for all others.
SELECT tenant_id FROM (
    SELECT tenant_id FROM agents_quotas UNION SELECT tenant_id FROM agents_usage
) AS known
WHERE tenant_id <> '*' AND tenant_id > :after ORDER BY tenant_id LIMIT :limit;

-- name: exceeded_quotas
SELECT count(*) FROM agents_standings WHERE state IN ('throttled', 'blocked');

-- name: active_sessions
SELECT count(*) FROM agents_sessions WHERE status = 'active';
