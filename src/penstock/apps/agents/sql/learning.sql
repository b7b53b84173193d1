-- name: sessions_to_learn_from
{part session}
WHERE status IN ('closed', 'expired') AND (learned_turns IS NULL OR learned_turns <> turns)
    AND (CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant)
ORDER BY last_active_at, id
LIMIT :limit;

-- name: learned_from_session
-- Only as it was when it was read: turns that came in meanwhile are still to be looked at.
UPDATE agents_sessions SET learned_turns = :turns
WHERE id = :id AND turns = :turns AND status <> 'archived';

-- name: put_trajectory
INSERT INTO agents_trajectories (
    id, tenant_id, workspace_id, user_id, session_id, turn_ids, skill_ids, content, started_at,
    ended_at, verdict, verdict_reason, metrics, embedding_id, created_at
)
VALUES (:id, :tenant_id, :workspace_id, :user_id, :session_id, :turn_ids, :skill_ids, :content,
    :started_at, :ended_at, :verdict, :verdict_reason, :metrics, :embedding_id, :now)
ON CONFLICT (id) DO UPDATE SET turn_ids = excluded.turn_ids, skill_ids = excluded.skill_ids,
    content = excluded.content, started_at = excluded.started_at, ended_at = excluded.ended_at,
    verdict = excluded.verdict, verdict_reason = excluded.verdict_reason,
    metrics = excluded.metrics;

-- name: drop_trajectory
DELETE FROM agents_trajectories WHERE id = ?;

-- name: trajectories_of_session
{part trajectory} WHERE session_id = ? ORDER BY started_at, id;

-- name: trajectory
{part trajectory}
WHERE id = :id AND (CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant);

-- name: trajectories
{part trajectory}
WHERE (CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant)
    AND (CAST(:verdict AS TEXT) IS NULL OR verdict = :verdict)
    AND (CAST(:session AS TEXT) IS NULL OR session_id = :session)
    AND (ended_at < :before_at OR (ended_at = :before_at AND id < :before_id))
ORDER BY ended_at DESC, id DESC
LIMIT :limit;

-- name: trajectories_to_learn
-- The latest of which it is known how they ended.
{part trajectory}
WHERE tenant_id = :tenant AND verdict <> 'unknown' AND created_at <= :until
ORDER BY ended_at DESC, id DESC
LIMIT :limit;

-- name: tenants_with_trajectories
SELECT DISTINCT tenant_id FROM agents_trajectories ORDER BY tenant_id;

-- name: tenants_with_classifiers
SELECT DISTINCT tenant_id FROM agents_classifiers WHERE is_active = 1 ORDER BY tenant_id;

-- name: trajectories_of_person
SELECT id FROM agents_trajectories
WHERE (CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant) AND user_id = :person;

-- name: patterns_of_tenant
{part pattern} WHERE CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant ORDER BY id;

-- name: drop_pattern
DELETE FROM agents_patterns WHERE id = ?;

-- name: put_pattern
INSERT INTO agents_patterns (
    id, tenant_id, pattern_type, content, embedding_id, exemplar_trajectory_ids, confidence,
    usage_count, success_count, is_active, superseded_by, metadata, created_at, updated_at
)
VALUES (:id, :tenant_id, :pattern_type, :content, :id, :exemplar_trajectory_ids, :confidence,
    0, 0, :is_active, NULL, :metadata, :now, :now)
ON CONFLICT (id) DO NOTHING;

-- name: change_pattern
UPDATE agents_patterns SET content = :content, confidence = :confidence, is_active = :is_active,
    exemplar_trajectory_ids = :exemplar_trajectory_ids, metadata = :metadata, updated_at = :now
WHERE id = :id;

-- name: supersede_pattern
UPDATE agents_patterns SET is_active = 0, superseded_by = :by, updated_at = :now
WHERE id = :id AND superseded_by IS NULL;

-- name: pattern
{part pattern}
WHERE id = :id AND (CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant);

-- name: patterns
{part pattern}
WHERE (CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant)
    AND (CAST(:active AS INTEGER) IS NULL OR is_active = :active)
    AND (CAST(:kind AS TEXT) IS NULL OR pattern_type = :kind)
    AND (CAST(:before AS TEXT) IS NULL OR id < :before)
ORDER BY id DESC
LIMIT :limit;

-- name: patterns_to_compare
{part pattern} WHERE tenant_id = ? AND superseded_by IS NULL ORDER BY usage_count DESC, id;

-- name: use_pattern
UPDATE agents_patterns SET usage_count = usage_count + 1 WHERE id = ? AND is_active = 1;

-- name: credit_pattern
UPDATE agents_patterns SET success_count = success_count + :more
WHERE id = :id AND tenant_id = :tenant;

-- name: activate_pattern
UPDATE agents_patterns SET is_active = :active, metadata = :metadata, updated_at = :now
WHERE id = :id AND superseded_by IS NULL;

-- name: patterns_that_fail
{part pattern}
WHERE tenant_id = :tenant AND is_active = 1 AND usage_count > :uses
    AND success_count < usage_count * CAST(:least AS DOUBLE PRECISION)
ORDER BY id;

-- name: put_classifier
INSERT INTO agents_classifiers (
    id, tenant_id, parent_id, model, parameters, fisher, figures, is_active, job_id, created_at
)
VALUES (:id, :tenant_id, :parent_id, :model, :parameters, NULL, :figures, 0, :job_id, :now)
ON CONFLICT (id) DO NOTHING;

-- name: activate_classifier
UPDATE agents_classifiers SET is_active = CASE WHEN id = :id THEN 1 ELSE 0 END
WHERE tenant_id = :tenant AND (is_active = 1 OR id = :id);

-- name: classifier
{part classifier} WHERE id = ?;

-- name: active_classifier
{part classifier} WHERE tenant_id = ? AND is_active = 1;

-- name: classifiers
SELECT id, tenant_id, parent_id, model, fisher IS NOT NULL, figures, is_active, job_id, created_at
FROM agents_classifiers
WHERE CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant
ORDER BY created_at DESC, id DESC LIMIT :limit;

-- name: keep_fisher
UPDATE agents_classifiers SET fisher = :fisher, figures = :figures WHERE id = :id;

-- part: trajectory
SELECT id, tenant_id, workspace_id, user_id, session_id, turn_ids, skill_ids, content, started_at,
    ended_at, verdict, verdict_reason, metrics, embedding_id, created_at
FROM agents_trajectories

-- part: pattern
SELECT id, tenant_id, pattern_type, content, embedding_id, exemplar_trajectory_ids, confidence,
    usage_count, success_count, is_active, superseded_by, metadata, created_at, updated_at
FROM agents_patterns

-- part: classifier
SELECT id, tenant_id, parent_id, model, parameters, fisher, figures, is_active, job_id, created_at
FROM agents_classifiers
