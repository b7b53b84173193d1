-- Take a limit away.
--
-- needs: common
-- writes: depths, depths:…, leased, limits, limits:depth, metrics:live, metrics:totals,
--   metrics:…, started, wake
-- ARGV[4]  field of `limits`
-- answers 1 if there was one, otherwise 0

local removed = redis.call('HDEL', PREFIX .. 'limits', ARGV[4])
    + redis.call('HDEL', PREFIX .. 'limits:depth', ARGV[4])
if removed > 0 then finish() end
return removed
