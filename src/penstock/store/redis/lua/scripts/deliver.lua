-- Insert a job from an outbox, once, however often and however late it is delivered.
--
-- needs: common edges lines inserts
-- later: linking gives plan_links, write_links
-- reads: followers:…
-- writes: canaries:…, changes:…, children:…, dead, dead:seq, dead:…, delivered, depths, depths:…,
--   due, edges:open, edges:…, ended:last:…, ended:own, ended:…, expiring, group:open:…, group:…,
--   groups:open:…, groups:…, inputs:…, job:…, jobs, keys, keys:expiring, lane:…, lanes, leased,
--   leases:…, letters:open, letters:open:…, lines, metrics:live, metrics:totals, metrics:…,
--   of_parent:…, of_schedule:…, pauses:jobs, seq, started, stops:…, wake
-- ARGV[4]… one job, see inserts.lua
-- answers 1 when it was created, otherwise {id, created} of it

local plan = plan_jobs(4)
if redis.call('ZADD', PREFIX .. 'delivered', 'NX', '+inf', plan.ids[1]) == 0 then
    return {{plan.ids[1], 0}}
end
if plan.linked then
    local plan_links, write_links = later_linking()
    local links, refusal = plan_links(plan)
    if refusal then
        redis.call('ZREM', PREFIX .. 'delivered', plan.ids[1])
        return refusal
    end
    insert_jobs(plan, links.waits)
    write_links(links)
else
    insert_jobs(plan, {})
end
finish()
return answers_of(plan)
