-- name: follower
SELECT to_json(statuses)::text FROM followers WHERE name = ?;

-- name: followers
SELECT name, to_json(statuses)::text,
    (SELECT count(*) FROM (SELECT FROM job_changes WHERE follower = name LIMIT :most) AS counted),
    (SELECT ms(at) FROM job_changes WHERE follower = name ORDER BY seq LIMIT 1)
FROM followers ORDER BY name;

-- name: follow
INSERT INTO followers (name, statuses) VALUES (:name, :statuses::text[])
ON CONFLICT (name) DO UPDATE SET statuses = excluded.statuses;

-- name: unfollow
DELETE FROM followers WHERE name = :name;

-- name: drop_changes
DELETE FROM job_changes WHERE follower = :name;

-- part: record_changes
-- Whichever of the three is asked for: the function looks at the followers itself.
SELECT record_changes();

-- name: record_every_change
{part record_changes};

-- name: record_later_changes
{part record_changes};

-- name: record_no_changes
{part record_changes};

-- name: waiting_changes
SELECT seq, job_id, type, queue, tenant_id, status, fence, ms(at) FROM job_changes
WHERE follower = :name ORDER BY seq LIMIT :limit;

-- name: confirm_changes
DELETE FROM job_changes WHERE follower = :name AND seq = ANY (:positions::bigint[]);

-- name: forget_changes
DELETE FROM job_changes WHERE job_id = ANY (?::text[]);

-- name: forget_changes_of_tenant
DELETE FROM job_changes WHERE tenant_id = ?;
