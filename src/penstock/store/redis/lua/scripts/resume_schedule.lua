-- Let a paused schedule fire again from a time on.
--
-- needs: common schedules
-- writes: depths, depths:…, leased, metrics:live, metrics:totals, metrics:…, schedule:…,
--   schedules:due, schedules:expiring, started, wake
-- ARGV[4] its id
-- ARGV[5] the revision it must have
-- ARGV[6] next_run_at, or ''
-- answers 1, or 0 when it is not as it was seen

if not change_schedule(ARGV[4], '0', ARGV[5], 'enabled', '1', 'next_run_at', ARGV[6]) then
    return 0
end
finish()
return 1
