-- Drop steps of one resolution that are too old, a bounded number at a time. Days go into the sum
-- of all days before.
--
-- needs: common
-- writes: metrics:live, metrics:totals, metrics:…, room
-- ARGV[4] the resolution in milliseconds
-- ARGV[5] for how many milliseconds steps are kept
-- answers how many were dropped

despite_full_memory()
local DAY_MS, BEFORE_ALL = '86400000', '0'
local all, live_key = PREFIX .. 'metrics:' .. ARGV[4], PREFIX .. 'metrics:live'
local before = '(' .. int(now - tonumber(ARGV[5]))
local most = ARGV[4] == DAY_MS and 10 or 1000
local old = redis.call('ZRANGEBYSCORE', all, '(' .. BEFORE_ALL, before, 'LIMIT', 0, most)
local live = redis.call('GET', live_key)

local function keep_day(bucket)
    local fields = redis.call('HGETALL', all .. ':' .. bucket)
    for place = 1, #fields, 2 do
        if lasts(fields[place]) then
            redis.call('HINCRBY', all .. ':' .. BEFORE_ALL, fields[place], fields[place + 1])
            redis.call('ZADD', all, BEFORE_ALL, BEFORE_ALL)
        end
    end
end

for _, bucket in ipairs(old) do
    if ARGV[4] == DAY_MS then keep_day(bucket) end
    if ARGV[4] == int(FINE_MS) and bucket == live then
        add_to_totals(bucket, 1)
        redis.call('DEL', live_key)
    end
    redis.call('UNLINK', all .. ':' .. bucket)
end
many('ZREM', all, old)
return #old
