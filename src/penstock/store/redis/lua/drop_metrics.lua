-- Drop steps of one resolution that are too old, a bounded number at a time.
--
-- needs: common
-- ARGV[4] the resolution in milliseconds
-- ARGV[5] for how many milliseconds steps are kept
-- answers how many were dropped

local all = PREFIX .. 'metrics:' .. ARGV[4]
local before = '(' .. int(now - tonumber(ARGV[5]))
local old = redis.call('ZRANGEBYSCORE', all, '-inf', before, 'LIMIT', 0, 1000)
for _, bucket in ipairs(old) do redis.call('UNLINK', all .. ':' .. bucket) end
many('ZREM', all, old)
return #old
