-- One schedule.
--
-- needs: common schedules
-- reads: schedule:…, schedules
-- ARGV[4] JSON ["tenant","name"]
-- answers the schedule, or nothing

return (schedule_named(ARGV[4]))
