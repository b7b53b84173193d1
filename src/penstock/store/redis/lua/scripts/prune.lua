-- Delete jobs of one status that ended before their retention, oldest first.
--
-- needs: common edges deletes
-- writes: canaries:…, children:…, dead, dead:…, depths, depths:…, edges:open, edges:…, ended:…,
--   group:open:…, group:…, groups:open:…, groups:…, inputs:…, job:…, jobs, leased, letters:open,
--   letters:open:…, logs:…, metrics:live, metrics:totals, metrics:…, of_parent:…, of_schedule:…,
--   started
-- ARGV[4]  the status
-- ARGV[5]  for how many milliseconds they are kept
-- ARGV[6]  how many to delete at most
-- ARGV[7]… ids to spare
-- answers how many were deleted

local status, limit = ARGV[4], tonumber(ARGV[6])
local before = '(' .. int(now - tonumber(ARGV[5]))
local spared = {}
for place = 7, #ARGV do spared[ARGV[place]] = true end

local old, passed = {}, 0
while #old < limit do
    local ids = redis.call('ZRANGEBYSCORE', PREFIX .. 'ended:' .. status, '-inf', before,
        'LIMIT', passed + #old, limit)
    if #ids == 0 then break end
    for _, id in ipairs(ids) do
        if spared[id] then passed = passed + 1
        elseif #old < limit then old[#old + 1] = id end
    end
end
delete_jobs(old, status)
write_counts()
return #old
