-- Jobs under a lease, the longest running first and those that have not started last.
--
-- needs: common pictures
-- ARGV[4] how many are wanted
-- answers a picture of each

local held = {}
for _, owner in ipairs(redis.call('SMEMBERS', PREFIX .. 'owners')) do
    for _, id in ipairs(redis.call('ZRANGE', PREFIX .. 'leases:' .. owner, 0, -1)) do
        local started_at = tonumber(redis.call('HGET', job_key(id), 'started_at') or '')
        local seq = tonumber(redis.call('ZSCORE', PREFIX .. 'jobs', id) or 0)
        held[#held + 1] = {id, started_at or math.huge, seq}
    end
end
table.sort(held, function(a, b)
    if a[2] ~= b[2] then return a[2] < b[2] end
    return a[3] < b[3]
end)
local found = {}
for place = 1, math.min(#held, tonumber(ARGV[4])) do
    found[#found + 1] = picture(held[place][1])
end
return found
