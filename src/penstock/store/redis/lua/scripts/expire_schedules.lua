-- Delete schedules past their expiry.
--
-- needs: common schedules
-- answers how many

local expired = redis.call('ZRANGEBYSCORE', PREFIX .. 'schedules:expiring', '-inf', NOW)
for _, id in ipairs(expired) do delete_schedule(id) end
if #expired > 0 then finish() end
return #expired
