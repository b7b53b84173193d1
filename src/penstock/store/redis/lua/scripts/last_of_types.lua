-- Ended jobs of some types, newest first; a bounded number at a time.
--
-- needs: common
-- reads: ended:…, job:…
-- ARGV[4]  the status
-- ARGV[5]  how many were looked at before
-- ARGV[6]… types
-- answers {how many have been looked at, or '' when there are no more; id and type of each}

local LOOKS = 2000
local wanted, found = {}, {}
for place = 6, #ARGV do wanted[ARGV[place]] = true end
local first = tonumber(ARGV[5])
local ids = redis.call('ZREVRANGE', PREFIX .. 'ended:' .. ARGV[4], first, first + LOOKS - 1)
for _, id in ipairs(ids) do
    local lane = redis.call('HGET', job_key(id), 'lane')
    local type = lane and parts_of(lane)[3]
    if wanted[type] then found[#found + 1] = {id, type} end
end
return {#ids == LOOKS and int(first + LOOKS) or '', found}
