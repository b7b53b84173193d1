-- Keep gauges, all of one sample in one step.
--
-- needs: common
-- writes: metrics:…, room
-- ARGV[4]  the step, or '' for the current one
-- ARGV[5]… field and value of each
-- answers the step

despite_full_memory()
local step = ARGV[4] ~= '' and ARGV[4] or int(math.floor(now / FINE_MS) * FINE_MS)
if #ARGV > 4 then
    redis.call('HSET', PREFIX .. 'metrics:' .. FINE_MS .. ':' .. step, unpack(ARGV, 5))
    redis.call('ZADD', PREFIX .. 'metrics:' .. FINE_MS, step, step)
end
return step
