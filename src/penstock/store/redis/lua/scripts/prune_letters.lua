-- Delete dead letters that were closed before their retention, with their jobs; a job that was
-- requeued lives on. Looks at a bounded number of them; Python asks on from there.
--
-- needs: common edges deletes
-- writes: canaries:…, children:…, dead, dead:…, depths, depths:…, edges:open, edges:…,
--   ended:last:…, ended:own, ended:…, group:open:…, group:…, groups:open:…, groups:…, inputs:…,
--   job:…, jobs, leased, letters:open, letters:open:…, logs:…, metrics:live, metrics:totals,
--   metrics:…, of_parent:…, of_schedule:…, started, wake
-- ARGV[4]  for how many milliseconds they are kept once they are closed
-- ARGV[5]  the number in `dead` to continue above
-- ARGV[6]  how many to delete at most
-- ARGV[7]… ids to spare
-- answers {the number to continue above, or '' when there are no more; how many were deleted}

local LOOKS = 500
local before, limit = now - tonumber(ARGV[4]), tonumber(ARGV[6])
local spared = {}
for place = 7, #ARGV do spared[ARGV[place]] = true end

local ids = redis.call('ZRANGEBYSCORE', PREFIX .. 'dead', '(' .. ARGV[5], '+inf', 'WITHSCORES',
    'LIMIT', 0, LOOKS)
local letters, still_dead, last = {}, {}, ''
for place = 1, #ids, 2 do
    if #letters == limit then break end
    local id = ids[place]
    local found = redis.call('HMGET', PREFIX .. 'dead:' .. id, 'resolution', 'resolved_at')
    local closed_at = not OPEN[found[1]] and tonumber(found[2] or '')
    if closed_at and closed_at < before and not spared[id] then
        letters[#letters + 1] = id
        if redis.call('HGET', job_key(id), 'status') == 'dead_letter' then
            still_dead[#still_dead + 1] = id
        end
    end
    last = ids[place + 1]
end
if #letters > 0 then
    delete_jobs(still_dead, 'dead_letter')
    delete_letters(letters)
    finish()
end
return {(#ids == 2 * LOOKS or #letters == limit) and last or '', #letters}
