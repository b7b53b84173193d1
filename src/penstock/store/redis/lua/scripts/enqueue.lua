-- Insert jobs, all of them or none; a known id or a taken key answers with the job that has it.
--
-- needs: common edges lines inserts
-- later: linking gives plan_links, write_links
-- reads: followers:…
-- writes: canaries:…, changes:…, children:…, dead, dead:seq, dead:…, depths, depths:…, due,
--   edges:open, edges:…, ended:last:…, ended:own, ended:…, expiring, group:open:…, group:…,
--   groups:open:…, groups:…, inputs:…, job:…, jobs, keys, keys:expiring, lane:…, lanes, leased,
--   leases:…, letters:open, letters:open:…, lines, metrics:live, metrics:totals, metrics:…,
--   of_parent:…, of_schedule:…, pauses:jobs, seq, started, stops:…, wake
-- ARGV[4]… the jobs, see inserts.lua
-- answers 1 when all were created, otherwise {id, created} for each

local plan = plan_jobs(4)
if plan.linked then
    local plan_links, write_links = later_linking()
    local links, refusal = plan_links(plan)
    if refusal then return refusal end
    insert_jobs(plan, links.waits)
    write_links(links)
else
    insert_jobs(plan, {})
end
finish()
return answers_of(plan)
