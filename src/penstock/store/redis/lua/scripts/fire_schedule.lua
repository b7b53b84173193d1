-- Enqueue a schedule's jobs and advance it, if it still is as it was seen.
--
-- needs: common edges lines release linking inserts schedules
-- reads: followers:…
-- writes: canaries:…, changes:…, children:…, dead, dead:seq, dead:…, depths, depths:…, due,
--   edges:open, edges:…, ended:last:…, ended:own, ended:…, expiring, group:open:…, group:…,
--   groups:open:…, groups:…, inputs:…, job:…, jobs, keys, keys:expiring, lane:…, lanes, leased,
--   leases:…, letters:open, letters:open:…, lines, metrics:live, metrics:totals, metrics:…,
--   of_parent:…, of_schedule:…, pauses:jobs, schedule:…, schedules:due, schedules:expiring, seq,
--   started, stops:…, wake
-- ARGV[4]  its id
-- ARGV[5]  the revision it must have
-- ARGV[6]  next_run_at, or ''
-- ARGV[7]  last_run_at, or '' to leave it
-- ARGV[8]… the jobs, see inserts.lua, if there are any
-- answers 1, or 0 when it is not as it was seen

local id = ARGV[4]
local seen = redis.call('HMGET', schedule_key(id), 'enabled', 'revision')
if seen[1] ~= '1' or seen[2] ~= ARGV[5] then return 0 end

local created = 0
if #ARGV > 8 then
    local plan = plan_jobs(8)
    local links, refusal = plan_links(plan)
    if refusal then return refusal end
    insert_jobs(plan, links.waits)
    write_links(links)
    created = #plan.created
end
if ARGV[7] ~= '' then redis.call('HSET', schedule_key(id), 'last_run_at', ARGV[7]) end
redis.call('HINCRBY', schedule_key(id), 'run_count', created)
change_schedule(id, '1', ARGV[5], 'next_run_at', ARGV[6])
finish()
return 1
