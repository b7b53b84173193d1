-- Delete schedules past their expiry.
--
-- needs: common schedules
-- writes: depths, depths:…, leased, metrics:live, metrics:totals, metrics:…, schedule:…,
--   schedules, schedules:due, schedules:expiring, started, wake
-- answers how many

local expired = redis.call('ZRANGEBYSCORE', PREFIX .. 'schedules:expiring', '-inf', NOW)
for _, id in ipairs(expired) do delete_schedule(id) end
if #expired > 0 then finish() end
return #expired
