-- Stage and expire what fell due, then lease the most urgent jobs, each under a new fence.
--
-- An idle worker finds one new job or none, so that is decided here, without making the functions
-- that everything else needs: claim_any.lua.
--
-- needs: ground
-- later: claim_any gives answer
-- later: changes gives record_change
-- reads: breakers, followers:…, jobs, limits, pauses
-- writes: breakers:state, canaries:…, changes:…, children:…, dead, dead:seq, dead:…, depths,
--   depths:…, due, edges:open, edges:…, ended:last:…, ended:own, ended:…, expiring, group:open:…,
--   group:…, groups:open:…, groups:…, inputs:…, job:…, keys, lane:…, lanes, leased, leases:…,
--   letters:open, letters:open:…, lines, metrics:live, metrics:totals, metrics:…, owners,
--   pauses:jobs, rates, room, slots, started, stops:…, wake
-- ARGV[4]  the claim as JSON: owner, types (each as JSON text), limit, start, lease_ms,
--          type_lease_ms, queues, max_priority, ahead, at_most (how many by type), last_tenant and
--          walked_to (as the last answer said, or '')
-- answers  {now, milliseconds until to ask again or '', last tenant, walked to, slots as {scope,
--          name, slots} each, runs…}; a run is what leases in a row have in common, and then two
--          values each: {lane, doc, created_at, queued_at, expires_at, fence, 1 if started,
--          {attempts, snoozes, rescues, timeout_ms, checkpoint} or {} of a job's first lease,
--          member, payload, …}

call('DEL', PREFIX .. 'room')  -- despite_full_memory(), see common.lua
local claim = cjson.decode(ARGV[4])
for name, value in pairs(claim) do
    if value == cjson.null then claim[name] = nil end
end

-- The only lane of the installation, false if there is none, nil if there are several.
local function only_lane()
    local lanes = call('ZRANGE', PREFIX .. 'lanes', 0, 1)
    if #lanes > 1 then return nil end
    return lanes[1] or false
end

local function serves(lane)
    for _, type_name in ipairs(claim.types) do
        if string.sub(lane, 1, #type_name) == type_name then return true end
    end
    return false
end

-- Whether no job of the lane's type may be leased.
local function full(listed)
    local type_name = cjson.decode(string.match(listed, '\n(.*)$'))[3]
    return (claim.at_most or {})[type_name] == 0
end

local function add(name, field, by)
    if call('HINCRBY', PREFIX .. name, field, by) == 0 then call('HDEL', PREFIX .. name, field) end
end

-- Leases the only job of the only lane, if it is a new one: the run of the answer, and its tenant.
local function lease_one(listed)
    local lane = string.match(listed, '\n(.*)$')
    local members = call('ZRANGE', PREFIX .. 'lane:' .. lane, 0, 1)
    if #members ~= 1 then return nil end
    local id = string.sub(members[1], 2)
    local key = job_key(id)
    local found = call('HMGET', key, 'status', 'fence', 'updated_at', 'expires_at', 'key_scope',
        'doc', 'payload', 'created_at', 'queued_at')
    if found[1] ~= 'queued' or found[2] or found[3] or found[4] or found[5] then return nil end
    local queue, tenant, type_name = unpack(cjson.decode(lane), 1, 3)
    local holder, started = lane .. '\n' .. claim.owner, claim.start > 0
    call('HSET', key, 'status', 'in_progress', 'fence', 1, 'lease_owner', claim.owner,
        started and 'started_at' or 'updated_at', NOW)
    if call('EXISTS', PREFIX .. 'followers:in_progress') == 1 then
        later_changes()(id, lane, 'in_progress', 1)
    end
    call('DEL', PREFIX .. 'lane:' .. lane)
    call('ZREM', PREFIX .. 'lanes', listed)
    for _, depths in ipairs(tenant == '' and {'depths'} or {'depths', 'depths:' .. tenant}) do
        add(depths, 'queued ' .. queue, -1)
        add(depths, 'in_progress ' .. queue, 1)
    end
    add('leased', holder, 1)
    if started then add('started', holder, 1) end
    call('SADD', PREFIX .. 'owners', claim.owner)
    local lasts = (claim.type_lease_ms or {})[type_name] or claim.lease_ms
    call('ZADD', PREFIX .. 'leases:' .. claim.owner, int(monotonic + lasts), id)
    call('PUBLISH', PREFIX .. 'wake', '')
    return {lane, found[6], found[8], found[9], false, 1, started and 1 or 0, {}, members[1],
        found[7]}, tenant
end

-- The answer where nothing fell due, nothing is gated and one new job waits at most; else nil.
local function claim_one()
    if claim.queues or claim.max_priority or claim.limit < 1 then return nil end
    if call('EXISTS', PREFIX .. 'pauses', PREFIX .. 'limits', PREFIX .. 'breakers') > 0 then
        return nil
    end
    local due = tonumber(call('ZRANGE', PREFIX .. 'due', 0, 0, 'WITHSCORES')[2])
    if due and due <= now then return nil end
    local expires = tonumber(call('ZRANGE', PREFIX .. 'expiring', 0, 0, 'WITHSCORES')[2])
    if expires and expires <= now then return nil end
    local lane = only_lane()
    if lane == nil then return nil end
    local answer = {NOW, due and int(due - now) or '', claim.last_tenant, '', {}}
    if lane and serves(lane) and not full(lane) then
        answer[6], answer[3] = lease_one(lane)
        if not answer[6] then return nil end
    end
    return answer
end

return claim_one() or later_claim_any()
