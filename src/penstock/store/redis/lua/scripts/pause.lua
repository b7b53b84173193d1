-- Hold a queue, a type, a tenant or one waiting job; what is paused already keeps its pause.
--
-- needs: common
-- reads: followers:…
-- writes: changes:…, depths, depths:…, due, ended:last:…, ended:own, ended:…, expiring, job:…,
--   lane:…, lanes, leased, leases:…, metrics:live, metrics:totals, metrics:…, pauses:jobs, room,
--   started, stops:…, wake
-- ARGV[4]  scope
-- ARGV[5]  name
-- ARGV[6]  JSON of reason and by whom, without the opening bracket
-- answers the pause, JSON [created_at, reason, by whom]

despite_full_memory()
local MAY_PAUSE = {from pause}

local scope, name = ARGV[4], ARGV[5]
local key, field = PREFIX .. 'pauses', scope .. '\n' .. name
if scope == 'job' then
    key, field = PREFIX .. 'pauses:jobs', name
    local job = look(name)
    if not job then return {'refused', 'JobNotFound', name} end
    if MAY_PAUSE[job.status] then
        leave(job)
        redis.call('HSET', job_key(name), 'status', 'paused', 'updated_at', NOW)
        enter(job, 'paused')
    elseif job.status ~= 'paused' then
        return {'refused', 'IllegalTransition', job.status, 'pause', name}
    end
end
redis.call('HSETNX', key, field, '[' .. NOW .. ',' .. ARGV[6])
finish()
return redis.call('HGET', key, field)
