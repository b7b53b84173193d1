-- When jobs under a lease began. Looks at a bounded number of them; Python asks on from there.
--
-- needs: common
-- reads: job:…, leases:…
-- ARGV[4]  the cursor in the leases of the first owner
-- ARGV[5]… owners
-- answers {how many owners are done, the cursor in the next one's leases, {id, started_at} each}

local LOOKS, AT_ONCE = 400, 100
local cursor, found = ARGV[4], {}
for place = 5, #ARGV do
    repeat
        if #found >= LOOKS then return {place - 5, cursor, found} end
        local key = PREFIX .. 'leases:' .. ARGV[place]
        local held = redis.call('ZSCAN', key, cursor, 'COUNT', AT_ONCE)
        for at = 1, #held[2], 2 do
            local id = held[2][at]
            found[#found + 1] = {id, redis.call('HGET', job_key(id), 'started_at')}
        end
        cursor = held[1]
    until cursor == '0'
end
return {#ARGV - 4, '0', found}
