-- All schedules.
--
-- needs: common schedules
-- reads: schedule:…, schedules
-- answers each of them

local found = {}
for _, id in ipairs(redis.call('HVALS', PREFIX .. 'schedules')) do
    found[#found + 1] = schedule(id)
end
return found
