-- Extend what an owner still holds, and say whom somebody asked to stop.
--
-- needs: common
-- reads: job:…, stops:…
-- writes: leases:…, room
-- ARGV[4]  the owner
-- ARGV[5]  milliseconds for every other lease of the owner, or ''
-- ARGV[6]  how many ids it has given up, which follow
-- …        then id, fence and milliseconds of each lease it holds
-- answers  {ids that were lost}, {ids that were asked to stop}

despite_full_memory()
local owner, unheard_ms, given_up = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
local leases = PREFIX .. 'leases:' .. owner
local known, lost, extended = {}, {}, {}

local function extend(id, length)
    extended[#extended + 1] = int(monotonic + length)
    extended[#extended + 1] = id
end

for place = 7, 6 + given_up do known[ARGV[place]] = true end
for first = 7 + given_up, #ARGV, 3 do
    local id = ARGV[first]
    local found = redis.call('HMGET', job_key(id), 'status', 'fence', 'lease_owner')
    known[id] = true
    if found[1] == 'in_progress' and found[2] == ARGV[first + 1] and found[3] == owner then
        extend(id, tonumber(ARGV[first + 2]))
    else
        lost[#lost + 1] = id
    end
end
if unheard_ms then
    local all = redis.call('ZRANGE', leases, 0, -1, 'WITHSCORES')
    for place = 1, #all, 2 do
        local longer = monotonic + unheard_ms > tonumber(all[place + 1])
        if longer and not known[all[place]] then extend(all[place], unheard_ms) end
    end
end
if #extended > 0 then many('ZADD', leases, extended, 2) end
return {lost, redis.call('SMEMBERS', PREFIX .. 'stops:' .. owner)}
