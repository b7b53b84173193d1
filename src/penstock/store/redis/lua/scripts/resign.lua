-- Give a leadership up at once.
--
-- needs: common
-- writes: leaders
-- ARGV[4] the role
-- ARGV[5] the owner
-- answers 1, or 0 when it was not the owner's

local held = redis.call('HGET', PREFIX .. 'leaders', ARGV[4])
if not held or string.match(held, '^%S+ (.*)$') ~= ARGV[5] then return 0 end
return redis.call('HDEL', PREFIX .. 'leaders', ARGV[4])
