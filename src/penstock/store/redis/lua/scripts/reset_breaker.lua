-- Close a breaker by hand and forget its failures.
--
-- needs: common
-- reads: breakers
-- writes: breakers:state, depths, depths:…, leased, metrics:live, metrics:totals, metrics:…,
--   started, wake
-- ARGV[4]  its name
-- answers 1 if there is one, otherwise 0

if redis.call('HEXISTS', PREFIX .. 'breakers', ARGV[4]) == 0 then return 0 end
redis.call('HDEL', PREFIX .. 'breakers:state', ARGV[4])
finish()
return 1
