-- name: forgettable
-- Memories that have expired, or matter too little and were neither made nor recalled lately.
{part memory}
WHERE (CAST(:tenant AS TEXT) IS NULL OR m.tenant_id = :tenant) AND m.id > :after
    AND (m.expires_at <= :as_of OR (m.importance < :least AND m.created_at <= :before
        AND (m.last_accessed_at IS NULL OR m.last_accessed_at <= :before)))
ORDER BY m.id LIMIT :limit;

-- name: decay_until
-- The last of the memories that are decayed together, and how many they are.
SELECT max(p.id), count(*) FROM (
    SELECT m.id FROM agents_memories m
    WHERE (CAST(:tenant AS TEXT) IS NULL OR m.tenant_id = :tenant) AND m.id > :after
    ORDER BY m.id LIMIT :limit
) p;

-- name: decay_memories
-- A memory grows less important with every whole period since it was last decayed or recalled, and
-- the slower the more often it was recalled.
UPDATE agents_memories SET
    importance = importance * power(
        CAST(:factor AS DOUBLE PRECISION),
        CAST((:as_of - {part decay_from}) / :period AS DOUBLE PRECISION)
            / (1 + ln(CAST(1 + access_count AS DOUBLE PRECISION)))
    ),
    last_decayed_at = {part decay_from} + (:as_of - {part decay_from}) / :period * :period
WHERE id > :after AND id <= :last AND (CAST(:tenant AS TEXT) IS NULL OR tenant_id = :tenant)
    AND {part decay_from} + :period <= :as_of;

-- part: decay_from
(CASE WHEN last_accessed_at > last_decayed_at THEN last_accessed_at ELSE last_decayed_at END)
