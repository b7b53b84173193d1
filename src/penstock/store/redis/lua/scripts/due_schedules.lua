-- Enabled schedules whose time has come, the most overdue first.
--
-- needs: common schedules
-- reads: schedule:…, schedules:due, schedules:expiring
-- ARGV[4] how many at most
-- answers {milliseconds until the time of the next one, or nothing; each of them}

local found, limit = {}, tonumber(ARGV[4])
for _, id in ipairs(redis.call('ZRANGEBYSCORE', PREFIX .. 'schedules:due', '-inf', NOW)) do
    local expires_at = tonumber(redis.call('ZSCORE', PREFIX .. 'schedules:expiring', id) or '')
    if #found < limit and (not expires_at or expires_at > now) then
        found[#found + 1] = schedule(id)
    end
end
local upcoming = redis.call('ZRANGEBYSCORE', PREFIX .. 'schedules:due', '(' .. NOW, '+inf',
    'WITHSCORES', 'LIMIT', 0, 1)
return {upcoming[2] and int(tonumber(upcoming[2]) - now) or false, found}
