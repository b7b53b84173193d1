-- Have a job that has not joined the queue yet wait for more parents.
--
-- needs: common edges lines release linking
-- reads: followers:…
-- writes: canaries:…, changes:…, children:…, dead, dead:seq, dead:…, depths, depths:…, due,
--   edges:open, edges:…, ended:last:…, ended:own, ended:…, expiring, group:open:…, group:…,
--   groups:open:…, groups:…, inputs:…, job:…, keys, lane:…, lanes, leased, leases:…,
--   letters:open, letters:open:…, metrics:live, metrics:totals, metrics:…, pauses:jobs, started,
--   stops:…, wake
-- ARGV[4]  the job's id
-- ARGV[5]  its edges as JSON, see linking.lua
-- answers 1

local MAY_WAIT = {pending = true, paused = true}

local child = look(ARGV[4])
if not child then return {'refused', 'JobNotFound', ARGV[4]} end
if not MAY_WAIT[child.status] or child.queued_at then
    return {'refused', 'IllegalTransition', child.status, 'depend', child.id}
end

local fresh, fresh_parents = {}, {}
for _, edge in ipairs(distinct(cjson.decode(ARGV[5]))) do
    local field = edge_field(edge[1], edge[2], edge[3])
    if redis.call('HEXISTS', PREFIX .. 'edges:' .. child.id, field) == 0 then
        fresh[#fresh + 1] = edge
        fresh_parents[#fresh_parents + 1] = edge[1]
    end
end
if #fresh == 0 then return 1 end

-- Edges that a requeue may open again count too, or two jobs could come to wait for each other.
local function open_parents(id)
    if id == child.id then return fresh_parents end
    local parents, edges = {}, redis.call('HGETALL', PREFIX .. 'edges:' .. id)
    for place = 1, #edges, 2 do
        local outcome, _, terms = edge_state(edges[place + 1])
        local reopens = (outcome == 'cancelled' or outcome == 'dead') and restores(terms)
        if not outcome or reopens then parents[#parents + 1] = (split_edge(edges[place])) end
    end
    return parents
end

local cycle = find_cycle({child.id}, open_parents)
if cycle then
    table.insert(cycle, 1, 'DependencyCycle')
    table.insert(cycle, 1, 'refused')
    return cycle
end

local links = {added = {{child.id, fresh}}, ended = {}}
local refusal = refuse_links(links, {})
if refusal then return refusal end
change_waiting(child, #fresh)
write_links(links)
finish()
return 1
