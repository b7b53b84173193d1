-- Keep gauges in the current step.
--
-- needs: common
-- ARGV[4]… field and value of each
-- answers 1

despite_full_memory()
local bucket = int(math.floor(now / FINE_MS) * FINE_MS)
local key = PREFIX .. 'metrics:' .. FINE_MS .. ':' .. bucket
for place = 4, #ARGV, 2 do redis.call('HSET', key, ARGV[place], ARGV[place + 1]) end
if #ARGV > 3 then redis.call('ZADD', PREFIX .. 'metrics:' .. FINE_MS, bucket, bucket) end
return 1
