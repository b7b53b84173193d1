-- Let it go on; a job goes back to waiting for its own time.
--
-- needs: common
-- reads: followers:…
-- writes: changes:…, depths, depths:…, due, ended:last:…, ended:own, ended:…, expiring, job:…,
--   lane:…, lanes, leased, leases:…, metrics:live, metrics:totals, metrics:…, pauses,
--   pauses:jobs, room, started, stops:…, wake
-- ARGV[4]  scope
-- ARGV[5]  name
-- answers 1 if it was paused, otherwise 0

despite_full_memory()
local MAY_RESUME = {from resume}

local scope, name = ARGV[4], ARGV[5]
local found = 0
if scope == 'job' then
    local job = look(name)
    if not job then return {'refused', 'JobNotFound', name} end
    if MAY_RESUME[job.status] then
        leave(job)
        redis.call('HSET', job_key(name), 'status', 'pending', 'updated_at', NOW)
        enter(job, 'pending')
        found = 1
    end
    found = math.max(found, redis.call('HDEL', PREFIX .. 'pauses:jobs', name))
else
    found = redis.call('HDEL', PREFIX .. 'pauses', scope .. '\n' .. name)
end
finish()
return found
