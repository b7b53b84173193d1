-- Jobs by what is known of them, newest first. A look goes through so many jobs and no more, so that
-- a page takes no longer however many there are: end_of_… tells the place where it ends.

-- name: search_bounds
SELECT least(coalesce(:before::text, chr(1114111)) COLLATE "C", coalesce(:last::text, chr(1114111))),
    coalesce(:first::text, '');

-- part: fits
(:statuses::text[] IS NULL OR status = ANY(:statuses::text[]))
  AND (:type::text IS NULL OR type = :type) AND (:queue::text IS NULL OR queue = :queue)
  AND (:category::text IS NULL OR category = :category)
  AND (:tenant_id::text IS NULL OR tenant_id = :tenant_id)
  AND (:workspace_id::text IS NULL OR workspace_id = :workspace_id)
  AND (:created_by::text IS NULL OR created_by = :created_by)
  AND (:parent_job_id::text IS NULL OR parent_job_id = :parent_job_id)
  AND (:schedule_id::text IS NULL OR schedule_id = :schedule_id)
  AND (:lease_owner::text IS NULL OR lease_owner = :lease_owner)
  AND (:tag::text IS NULL OR :tag = ANY(tags))
  AND (:since::bigint IS NULL OR created_at >= at(:since))
  AND (:until::bigint IS NULL OR created_at < at(:until))
  AND (:needle::text IS NULL OR strpos(payload::text, :needle) > 0)
  AND (:other::text IS NULL OR strpos(payload::text, :other) > 0)
  AND (:text::text IS NULL OR payload::text COLLATE "C" ILIKE :text
      OR error COLLATE "C" ILIKE :text OR type ILIKE :text OR key ILIKE :text OR id ILIKE :text
      OR (:second_text::text IS NOT NULL AND EXISTS (
          SELECT FROM unnest(ARRAY[:second_text::text, :third_text, :fourth_text]) AS other
          WHERE payload::text COLLATE "C" ILIKE other OR error COLLATE "C" ILIKE other
            OR type ILIKE other OR key ILIKE other)))

-- name: end_of_newest
SELECT id, id FROM jobs WHERE id < :below AND id >= :above
ORDER BY id DESC LIMIT 1 OFFSET :looks::bigint - 1;

-- name: search_newest
SELECT id, CASE WHEN :verify::boolean THEN payload::text END FROM jobs
WHERE id < :below AND id >= :above AND {part fits}
ORDER BY id DESC LIMIT :limit;

-- name: find_jobs
SELECT {columns}
FROM jobs WHERE id < :below AND id >= :above AND {part fits}
ORDER BY id DESC LIMIT :limit;

-- name: end_of_children
SELECT id, id FROM jobs WHERE parent_job_id = :parent_job_id AND id < :below AND id >= :above
ORDER BY id DESC LIMIT 1 OFFSET :looks::bigint - 1;

-- name: search_children
SELECT id, CASE WHEN :verify::boolean THEN payload::text END FROM jobs
WHERE parent_job_id = :parent_job_id AND id < :below AND id >= :above AND {part fits}
ORDER BY id DESC LIMIT :limit;

-- name: end_of_scheduled
SELECT id, id FROM jobs WHERE schedule_id = :schedule_id AND id < :below AND id >= :above
ORDER BY id DESC LIMIT 1 OFFSET :looks::bigint - 1;

-- name: search_scheduled
SELECT id, CASE WHEN :verify::boolean THEN payload::text END FROM jobs
WHERE schedule_id = :schedule_id AND id < :below AND id >= :above AND {part fits}
ORDER BY id DESC LIMIT :limit;

-- name: id_at
SELECT ?::text;

-- name: search_listed
SELECT id, CASE WHEN :verify::boolean THEN payload::text END FROM jobs
WHERE id = ANY(:listed::text[]) AND {part fits}
ORDER BY id DESC LIMIT :limit;

-- name: of_status
-- Each from the index of its own; no more than :looks of each.
(SELECT id FROM jobs_live
    WHERE :queued::boolean AND status = 'queued' AND id < :below AND id >= :above LIMIT :looks)
UNION ALL
(SELECT id FROM jobs_live
    WHERE :in_progress::boolean AND status = 'in_progress' AND id < :below AND id >= :above
    LIMIT :looks)
UNION ALL
(SELECT id FROM jobs_live
    WHERE (:pending::boolean OR :failed::boolean) AND status IN ('pending', 'failed')
      AND waiting_on = 0 AND id < :below AND id >= :above
    LIMIT :looks)
UNION ALL
(SELECT id FROM jobs_live
    WHERE :pending::boolean AND status = 'pending' AND waiting_on > 0 AND id < :below
      AND id >= :above
    LIMIT :looks)
UNION ALL
(SELECT id FROM pauses JOIN jobs_live ON jobs_live.id = pauses.name
    WHERE :paused::boolean AND pauses.scope = 'job' AND id < :below AND id >= :above LIMIT :looks)
UNION ALL
(SELECT id FROM jobs_ended
    WHERE :completed::boolean AND status = 'completed' AND id < :below AND id >= :above
    LIMIT :looks)
UNION ALL
(SELECT id FROM jobs_ended
    WHERE :cancelled::boolean AND status = 'cancelled' AND id < :below AND id >= :above
    LIMIT :looks)
UNION ALL
(SELECT job_id FROM dead_letter_jobs
    WHERE :dead_letter::boolean AND job_id < :below AND job_id >= :above
    LIMIT :looks)
LIMIT :looks;

-- name: of_payload
SELECT id FROM jobs_ended
WHERE searchable(payload) @> :document::jsonb AND id < :below AND id >= :above LIMIT :looks;

-- name: living_ids
-- Living jobs have no index of their payloads: all of them are looked at.
SELECT id FROM jobs_live WHERE id < :below AND id >= :above LIMIT :looks;
