-- Drop what no longer matters: unique keys whose window is over, slots nobody uses, old starts.
--
-- needs: common
-- ARGV[4] how many keys to drop at most
-- answers how many keys were dropped

local expired = redis.call('ZRANGEBYSCORE', PREFIX .. 'keys:expiring', '-inf', NOW,
    'LIMIT', 0, tonumber(ARGV[4]))
many('HDEL', PREFIX .. 'keys', expired)
many('ZREM', PREFIX .. 'keys:expiring', expired)
return #expired
