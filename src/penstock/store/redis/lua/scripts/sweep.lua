-- Close edges whose parent has ended or is gone; there should never be one.
--
-- needs: common edges lines release
-- reads: followers:…
-- writes: canaries:…, changes:…, children:…, dead, dead:seq, dead:…, depths, depths:…, due,
--   edges:open, edges:…, ended:last:…, ended:own, ended:…, expiring, group:open:…, group:…,
--   groups:open:…, groups:…, inputs:…, job:…, keys, lane:…, lanes, leased, leases:…,
--   letters:open, letters:open:…, lines, metrics:live, metrics:totals, metrics:…, pauses:jobs,
--   room, started, stops:…, wake
-- ARGV[4]  where to go on, '0' at first
-- ARGV[5]  how many parents to look at
-- answers {where to go on or '0', how many edges and parents were found}

despite_full_memory()
local page = redis.call('SSCAN', PREFIX .. 'edges:open', ARGV[4], 'COUNT', ARGV[5])
local gone, ended, completed, seen = {}, {}, {}, {}
for _, parent in ipairs(page[2]) do
    local found = redis.call('HMGET', job_key(parent), 'status', 'result')
    if not seen[parent] and not found[1] then
        gone[#gone + 1] = parent
    elseif not seen[parent] and ENDED[found[1]] then
        ended[#ended + 1] = parent
        if found[1] == 'completed' then completed[parent] = found[2] or 'null' end
    end
    seen[parent] = true
end
local question = undecided(completed)
if question then return question end

local count = #ended
for _, parent in ipairs(gone) do
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', PREFIX .. 'children:' .. parent, 0, 0)) do
        local child, kind, argument = split_edge(member)
        local field = edge_field(parent, kind, argument)
        local edges = PREFIX .. 'edges:' .. child
        local terms = terms_of(redis.call('HGET', edges, field))
        redis.call('HSET', edges, field, 'satisfied ' .. NOW .. ' ' .. terms)
        redis.call('ZADD', PREFIX .. 'children:' .. parent, 1, member)
        local job = look(child)
        if job then change_waiting(job, -1) end
        count = count + 1
    end
    redis.call('SREM', PREFIX .. 'edges:open', parent)
end
end_jobs(ended)
if count > 0 then finish() end
return {page[1], count}
