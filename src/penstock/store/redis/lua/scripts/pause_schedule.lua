-- Let a schedule fire no more.
--
-- needs: common schedules
-- reads: schedules
-- writes: depths, depths:…, leased, metrics:live, metrics:totals, metrics:…, schedule:…,
--   schedules:due, schedules:expiring, started, wake
-- ARGV[4] JSON ["tenant","name"]
-- ARGV[5] the revision it must have, or ''
-- answers 1, or 0 when there was no such running one

local _, id = schedule_named(ARGV[4])
if not id or not change_schedule(id, '1', ARGV[5], 'enabled', '0') then return 0 end
finish()
return 1
