-- Jobs by what is known of them, newest first. A look goes through so many jobs and no more, so that
-- a page takes no longer however many there are: end_of_… tells the place where it ends.

-- name: search_bounds
-- Ids begin with the time they were made at, and jobs lie in the order they were enqueued in: nearly
-- the same, so a few of the neighbours are asked too.
SELECT
    min(
        CASE WHEN :before IS NULL THEN 9223372036854775807 ELSE coalesce((
            SELECT seq + (id < :before) FROM jobs WHERE id <= :before ORDER BY id DESC LIMIT 1), 0) END,
        CASE WHEN :last IS NULL THEN 9223372036854775807 ELSE coalesce((
            SELECT max(seq) + 1 FROM (
                SELECT seq FROM jobs WHERE id < :last ORDER BY id DESC LIMIT 1000)), 0) END),
    CASE WHEN :first IS NULL THEN 0 ELSE coalesce((
        SELECT min(seq) FROM (
            SELECT seq FROM jobs WHERE id >= :first ORDER BY id LIMIT 1000)),
        9223372036854775807) END;

-- part: fits
(:statuses IS NULL OR status IN (SELECT value FROM json_each(:statuses)))
  AND (:type IS NULL OR type = :type) AND (:queue IS NULL OR queue = :queue)
  AND (:category IS NULL OR category = :category)
  AND (:tenant_id IS NULL OR tenant_id = :tenant_id)
  AND (:workspace_id IS NULL OR workspace_id = :workspace_id)
  AND (:created_by IS NULL OR created_by = :created_by)
  AND (:parent_job_id IS NULL OR parent_job_id = :parent_job_id)
  AND (:schedule_id IS NULL OR schedule_id = :schedule_id)
  AND (:lease_owner IS NULL OR lease_owner = :lease_owner)
  AND (:tag IS NULL OR (instr(tags, :written_tag)
      AND :tag IN (SELECT value FROM json_each(iif(json_valid(tags), tags, '[]')))))
  AND (:since IS NULL OR created_at >= :since) AND (:until IS NULL OR created_at < :until)
  AND (:needle IS NULL OR instr(payload, :needle)) AND (:other IS NULL OR instr(payload, :other))
  AND (:text IS NULL OR payload LIKE :text ESCAPE '\' OR error LIKE :text ESCAPE '\'
      OR type LIKE :text ESCAPE '\' OR key LIKE :text ESCAPE '\' OR id LIKE :text ESCAPE '\'
      OR (:second_text IS NOT NULL AND EXISTS (
          SELECT 1 FROM (
              SELECT :second_text AS other UNION ALL SELECT :third_text UNION ALL SELECT :fourth_text)
          WHERE payload LIKE other ESCAPE '\' OR error LIKE other ESCAPE '\'
            OR type LIKE other ESCAPE '\' OR key LIKE other ESCAPE '\')))

-- name: end_of_newest
SELECT seq, id FROM jobs WHERE seq < :below AND seq >= :above
ORDER BY seq DESC LIMIT 1 OFFSET :looks - 1;

-- name: search_newest
SELECT id, CASE WHEN :verify THEN CAST(payload AS BLOB) END FROM jobs
WHERE seq < :below AND seq >= :above AND {part fits}
ORDER BY seq DESC LIMIT :limit;

-- name: find_jobs
SELECT {columns}
FROM jobs WHERE seq < :below AND seq >= :above AND {part fits}
ORDER BY seq DESC LIMIT :limit;

-- name: end_of_children
SELECT seq, id FROM jobs WHERE parent_job_id = :parent_job_id AND seq < :below AND seq >= :above
ORDER BY seq DESC LIMIT 1 OFFSET :looks - 1;

-- name: search_children
SELECT id, CASE WHEN :verify THEN CAST(payload AS BLOB) END FROM jobs
WHERE parent_job_id = :parent_job_id AND seq < :below AND seq >= :above AND {part fits}
ORDER BY seq DESC LIMIT :limit;

-- name: end_of_scheduled
SELECT seq, id FROM jobs WHERE schedule_id = :schedule_id AND seq < :below AND seq >= :above
ORDER BY seq DESC LIMIT 1 OFFSET :looks - 1;

-- name: search_scheduled
SELECT id, CASE WHEN :verify THEN CAST(payload AS BLOB) END FROM jobs
WHERE schedule_id = :schedule_id AND seq < :below AND seq >= :above AND {part fits}
ORDER BY seq DESC LIMIT :limit;

-- name: id_at
SELECT id FROM jobs WHERE seq = ?;

-- name: search_listed
SELECT id, CASE WHEN :verify THEN CAST(payload AS BLOB) END FROM jobs
WHERE seq IN (SELECT value FROM json_each(:listed)) AND {part fits}
ORDER BY seq DESC LIMIT :limit;

-- name: of_status
-- Each from the index of its own; no more than :looks of each.
SELECT * FROM (SELECT seq FROM jobs INDEXED BY jobs_queued
    WHERE :queued AND status = 'queued' AND seq < :below AND seq >= :above LIMIT :looks)
UNION ALL
SELECT * FROM (SELECT seq FROM jobs INDEXED BY jobs_leased
    WHERE :in_progress AND status = 'in_progress' AND seq < :below AND seq >= :above LIMIT :looks)
UNION ALL
SELECT * FROM (SELECT seq FROM jobs INDEXED BY jobs_due
    WHERE (:pending OR :failed) AND status IN ({from stage}) AND waiting_on = 0
      AND seq < :below AND seq >= :above LIMIT :looks)
UNION ALL
SELECT * FROM (SELECT seq FROM jobs INDEXED BY jobs_blocked
    WHERE :pending AND status = 'pending' AND waiting_on > 0 AND seq < :below AND seq >= :above
    LIMIT :looks)
UNION ALL
SELECT * FROM (SELECT seq FROM pauses JOIN jobs ON jobs.id = pauses.name
    WHERE :paused AND pauses.scope = 'job' AND seq < :below AND seq >= :above LIMIT :looks)
UNION ALL
SELECT * FROM (SELECT seq FROM jobs INDEXED BY jobs_ended
    WHERE status IN (iif(:completed, 'completed', ''), iif(:cancelled, 'cancelled', ''),
            iif(:dead_letter, 'dead_letter', ''))
      AND {part ended} AND seq < :below AND seq >= :above
    LIMIT :looks)
LIMIT :looks;
