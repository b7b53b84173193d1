-- Delete a schedule; jobs it enqueued stay.
--
-- needs: common schedules
-- writes: depths, depths:…, leased, metrics:live, metrics:totals, metrics:…, schedule:…,
--   schedules, schedules:due, schedules:expiring, started, wake
-- ARGV[4] JSON ["tenant","name"]
-- answers 1, or 0 when there was none

local _, id = schedule_named(ARGV[4])
if not id or not delete_schedule(id) then return 0 end
finish()
return 1
