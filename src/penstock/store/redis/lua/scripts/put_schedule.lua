-- Create or replace the schedule of a name; its id, counts and last run are kept.
--
-- needs: common schedules
-- writes: depths, depths:…, leased, metrics:live, metrics:totals, metrics:…, schedule:…,
--   schedules, schedules:due, schedules:expiring, started, wake
-- ARGV[4] JSON ["tenant","name"]
-- ARGV[5] the id of a new one
-- ARGV[6] the schedule as JSON
-- ARGV[7] 1 if it is enabled, otherwise 0
-- ARGV[8] next_run_at, or ''
-- ARGV[9] expires_at, or ''
-- answers the schedule

local _, id = schedule_named(ARGV[4])
if id then
    redis.call('HINCRBY', schedule_key(id), 'revision', 1)
else
    id = ARGV[5]
    redis.call('HSET', schedule_key(id), 'name', ARGV[4], 'created_at', NOW, 'revision', 0,
        'run_count', 0)
    redis.call('HSET', PREFIX .. 'schedules', ARGV[4], id)
end
redis.call('HSET', schedule_key(id), 'doc', ARGV[6], 'enabled', ARGV[7], 'next_run_at', ARGV[8],
    'expires_at', ARGV[9], 'updated_at', NOW)
index_schedule(id)
finish()
return schedule(id)
