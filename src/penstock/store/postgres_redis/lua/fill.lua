-- Write what PostgreSQL found ready into the windows.
--
-- ARGV[1]  JSON: lanes (lane to ranks and members), horizons (lane to rank), doubts (as `take` told
--          them before PostgreSQL was asked), gated, crowded, due, expires, most, spacing_ms

local filled = cjson.decode(ARGV[1])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

redis.call('DEL', HORIZONS)
for lane, entries in pairs(filled.lanes) do enter(lane, entries, filled.most) end
for lane, horizon in pairs(filled.horizons) do
    -- Behind the horizon jobs may be missing, and what is there would overtake them.
    redis.call('ZREMRANGEBYSCORE', lane_key(lane), '(' .. horizon, '+inf')
    redis.call('HSET', HORIZONS, lane, horizon)
end
redis.call('HDEL', STATE, 'gated', 'crowded', 'due', 'expires')
redis.call('HSET', STATE, 'filled_at', string.format('%.0f', now), 'answered', filled.doubts)
for _, field in ipairs({'gated', 'crowded', 'due', 'expires'}) do
    if filled[field] and filled[field] ~= cjson.null then
        redis.call('HSET', STATE, field, tostring(filled[field]))
    end
end
for _, key in ipairs({STATE, LANES, HORIZONS}) do redis.call('EXPIRE', key, FORGOTTEN_SECONDS) end
if filled.spacing_ms > 0 then
    redis.call('SET', PREFIX .. 'refilling', '', 'PX', filled.spacing_ms)
else
    redis.call('DEL', PREFIX .. 'refilling')
end
return 1
