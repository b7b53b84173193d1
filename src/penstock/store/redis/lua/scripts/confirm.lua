-- Jobs whose rows have left the outbox: remembered for a day more, since somebody who read their
-- rows before may still be about to deliver them.
--
-- needs: common
-- writes: delivered
-- ARGV[4]… the ids
-- answers how many are remembered

local DAY_MS = 86400000
local known = PREFIX .. 'delivered'
redis.call('ZREMRANGEBYSCORE', known, '-inf', int(now - DAY_MS))
for place = 4, #ARGV do redis.call('ZADD', known, 'XX', NOW, ARGV[place]) end
return redis.call('ZCARD', known)
