-- Remove a worker that stopped, and those nobody heard of for long.
--
-- needs: common
-- writes: workers, workers:seen, workers:since
-- ARGV[4] the owner
-- ARGV[5] after how many milliseconds of silence the others go
-- answers how many

local silent = '(' .. int(now - tonumber(ARGV[5]))
local gone = redis.call('ZRANGEBYSCORE', PREFIX .. 'workers:seen', '-inf', silent)
gone[#gone + 1] = ARGV[4]
many('HDEL', PREFIX .. 'workers', gone)
many('HDEL', PREFIX .. 'workers:since', gone)
return many('ZREM', PREFIX .. 'workers:seen', gone)
