-- Delete ended jobs and their dead letters at once, with the unique keys that would outlive them.
--
-- needs: common edges deletes
-- writes: canaries:…, children:…, dead, dead:…, depths, depths:…, edges:open, edges:…,
--   ended:last:…, ended:own, ended:…, group:open:…, group:…, groups:open:…, groups:…, inputs:…,
--   job:…, jobs, keys, keys:expiring, leased, letters:open, letters:open:…, logs:…, metrics:live,
--   metrics:totals, metrics:…, of_parent:…, of_schedule:…, started, wake
-- ARGV[4]… ids
-- answers how many were deleted

local ended = {completed = {}, cancelled = {}, dead_letter = {}}
local deleted = 0
for place = 4, #ARGV do
    local id = ARGV[place]
    local found = redis.call('HMGET', job_key(id), 'status', 'key')
    local alike = found[1] and ended[found[1]]
    if alike then
        alike[#alike + 1] = id
        deleted = deleted + 1
        if found[2] and holder_of(found[2]) == id then
            redis.call('HDEL', PREFIX .. 'keys', found[2])
            redis.call('ZREM', PREFIX .. 'keys:expiring', found[2])
        end
    end
end
for status, ids in pairs(ended) do delete_jobs(ids, status) end
finish()
return deleted
