-- Delete dead letters and their jobs for good; a job that was requeued lives on.
--
-- needs: common edges deletes
-- writes: canaries:…, children:…, dead, dead:…, depths, depths:…, edges:open, edges:…,
--   ended:last:…, ended:own, ended:…, group:open:…, group:…, groups:open:…, groups:…, inputs:…,
--   job:…, jobs, leased, letters:open, letters:open:…, logs:…, metrics:live, metrics:totals,
--   metrics:…, of_parent:…, of_schedule:…, started, wake
-- ARGV[4]… ids
-- answers how many letters there were

local known, still_dead = {}, {}
for place = 4, #ARGV do
    local id = ARGV[place]
    if redis.call('EXISTS', PREFIX .. 'dead:' .. id) == 1 then
        known[#known + 1] = id
        if redis.call('HGET', job_key(id), 'status') == 'dead_letter' then
            still_dead[#still_dead + 1] = id
        end
    end
end
if #known == 0 then return 0 end
delete_jobs(still_dead, 'dead_letter')
delete_letters(known)
finish()
return #known
