-- Delete those of some jobs that ended before a time; keys that outlive pruning stay.
--
-- needs: common edges deletes
-- writes: canaries:…, children:…, dead, dead:…, depths, depths:…, edges:open, edges:…,
--   ended:last:…, ended:own, ended:…, group:open:…, group:…, groups:open:…, groups:…, inputs:…,
--   job:…, jobs, leased, letters:open, letters:open:…, logs:…, metrics:live, metrics:totals,
--   metrics:…, of_parent:…, of_schedule:…, started, wake
-- ARGV[4]  the time, in UTC milliseconds
-- ARGV[5]… ids
-- answers how many were deleted

local before, deleted = tonumber(ARGV[4]), 0
local ended = {completed = {}, cancelled = {}, dead_letter = {}}
for place = 5, #ARGV do
    local id = ARGV[place]
    local status = redis.call('HGET', job_key(id), 'status')
    local alike = status and ended[status]
    local ended_at = alike and redis.call('ZSCORE', PREFIX .. 'ended:' .. status, id)
    if ended_at and tonumber(ended_at) < before then
        alike[#alike + 1] = id
        deleted = deleted + 1
    end
end
for status, ids in pairs(ended) do delete_jobs(ids, status) end
finish()
return deleted
