-- Cancel waiting jobs at once and ask running ones to stop.
--
-- needs: common edges lines release
-- reads: followers:…
-- writes: canaries:…, changes:…, children:…, dead, dead:seq, dead:…, depths, depths:…, due,
--   edges:open, edges:…, ended:last:…, ended:own, ended:…, expiring, group:open:…, group:…,
--   groups:open:…, groups:…, inputs:…, job:…, keys, lane:…, lanes, leased, leases:…,
--   letters:open, letters:open:…, lines, metrics:live, metrics:totals, metrics:…, pauses:jobs,
--   room, started, stops:…, wake
-- ARGV[4]  the reason
-- ARGV[5]… ids
-- answers the status of each afterwards

despite_full_memory()
local ids, jobs = {}, {}
for place = 5, #ARGV do
    local id = ARGV[place]
    ids[#ids + 1] = id
    jobs[id] = jobs[id] or look(id)
    if not jobs[id] then return {'refused', 'JobNotFound', id} end
end

local statuses, ended = {}, {}
for place, id in ipairs(ids) do
    local job, key = jobs[id], job_key(id)
    if MAY_CANCEL[job.status] then
        leave(job)
        redis.call('HSET', key, 'status', 'cancelled', 'error', ARGV[4], 'completed_at', NOW,
            'updated_at', NOW)
        enter(job, 'cancelled')
        redis.call('HDEL', PREFIX .. 'pauses:jobs', id)
        if job.key then release_key(job.key, id, job.key_scope) end
        measure_end(job.lane, 'cancelled', job.attempts)
        ended[#ended + 1] = id
    elseif job.status == 'in_progress' then
        if not job.cancel_requested_at then
            job.cancel_requested_at = now
            redis.call('HSET', key, 'cancel_requested_at', NOW)
            redis.call('SADD', PREFIX .. 'stops:' .. (job.lease_owner or ''), id)
        end
        redis.call('HSET', key, 'cancel_reason', ARGV[4], 'updated_at', NOW)
    end
    statuses[place] = job.status
end
end_jobs(ended)
finish()
return statuses
