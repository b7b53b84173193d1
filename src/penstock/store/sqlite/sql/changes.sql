-- name: follower
SELECT statuses FROM followers WHERE name = ?;

-- name: followers
SELECT name, statuses,
    (SELECT count(*) FROM (SELECT 1 FROM job_changes WHERE follower = name LIMIT :most)),
    (SELECT at FROM job_changes WHERE follower = name ORDER BY seq LIMIT 1)
FROM followers ORDER BY name;

-- name: follow
INSERT INTO followers (name, statuses) VALUES (:name, :statuses)
ON CONFLICT (name) DO UPDATE SET statuses = excluded.statuses;

-- name: unfollow
DELETE FROM followers WHERE name = :name;

-- name: drop_changes
DELETE FROM job_changes WHERE follower = :name;

-- part: record
    INSERT INTO job_changes (follower, job_id, type, queue, tenant_id, status, fence, at)
    SELECT name, NEW.id, NEW.type, NEW.queue, NEW.tenant_id, NEW.status, NEW.fence, NEW.updated_at
    FROM followers WHERE instr(statuses, '"' || NEW.status || '"');

-- name: record_every_change
CREATE TRIGGER IF NOT EXISTS jobs_made AFTER INSERT ON jobs
BEGIN
    {part record};
END;
CREATE TRIGGER IF NOT EXISTS jobs_changed AFTER UPDATE OF status ON jobs
WHEN NEW.status IS NOT OLD.status
BEGIN
    {part record};
END;

-- name: record_later_changes
-- Of new jobs nobody is told: an enqueue then costs no more than without followers.
DROP TRIGGER IF EXISTS jobs_made;
CREATE TRIGGER IF NOT EXISTS jobs_changed AFTER UPDATE OF status ON jobs
WHEN NEW.status IS NOT OLD.status
BEGIN
    {part record};
END;

-- name: record_no_changes
DROP TRIGGER IF EXISTS jobs_made;
DROP TRIGGER IF EXISTS jobs_changed;

-- name: waiting_changes
SELECT seq, job_id, type, queue, tenant_id, status, fence, at FROM job_changes
WHERE follower = :name ORDER BY seq LIMIT :limit;

-- name: confirm_changes
DELETE FROM job_changes
WHERE follower = :name AND seq IN (SELECT value FROM json_each(:positions));

-- name: forget_changes
DELETE FROM job_changes WHERE job_id IN (SELECT value FROM json_each(?));

-- name: forget_changes_of_tenant
DELETE FROM job_changes WHERE tenant_id = ?;
