-- What claim.lua does of a claim that is more than one job in one lane, and says what it is told and
-- answers: stage and expire what fell due, look at the gates, take turns.
--
-- needs: common turns
-- later: passes gives expire, stage
-- later: gates gives open_gates

local STAGE_FIRST, MAX_LANES, MAX_VISITS, PAGE = 200, 512, 4096, 256
local TRIES_UNMARKED = 3
local MAY_CLAIM = {from claim}

local claim = cjson.decode(ARGV[4])
for name, value in pairs(claim) do
    if value == cjson.null then claim[name] = nil end
end

local function set_of(names)
    if not names then return nil end
    local set = {}
    for _, name in ipairs(names) do set[name] = true end
    return set
end

local queues = set_of(claim.queues)

local function anything_of(name)
    return #redis.call('ZRANGEBYSCORE', PREFIX .. name, '-inf', NOW, 'LIMIT', 0, 1) > 0
end

if anything_of('expiring') or anything_of('due') then
    local expire, stage = later_passes()
    expire(STAGE_FIRST)
    stage(math.max(STAGE_FIRST, claim.limit))
end

local gates = nil
if redis.call('EXISTS', PREFIX .. 'pauses', PREFIX .. 'limits', PREFIX .. 'breakers') > 0 then
    gates = later_gates()(claim)
end

-- How many of a type may still be leased; the others are not in it.
local left = claim.at_most or {}

local function wanted(lane)
    local parts = parts_of(lane)
    return (not queues or queues[parts[1]]) and left[parts[3]] ~= 0 and
        (not gates or gates.open(lane))
end

-- The ranges of `lanes` to look through, beginning behind where the last claim stopped.
local function ranges()
    local ahead, behind = {}, {}
    local list = behind
    for _, type_name in ipairs(claim.types) do
        local from, to = '[' .. type_name, '[' .. type_name .. '\255'
        if string.sub(claim.walked_to, 1, #type_name) == type_name then
            behind[#behind + 1] = {from, '[' .. claim.walked_to}
            list = ahead
            from = '(' .. claim.walked_to
        end
        list[#list + 1] = {from, to}
    end
    for _, range in ipairs(behind) do ahead[#ahead + 1] = range end
    return ahead
end

-- The lanes to choose from; where there are too many, each claim walks on from the last.
local function walk()
    local found, visited = {}, 0
    for _, range in ipairs(ranges()) do
        local from, to, page = range[1], range[2], nil
        repeat
            page = redis.call('ZRANGEBYLEX', PREFIX .. 'lanes', from, to, 'LIMIT', 0, PAGE)
            for _, entry in ipairs(page) do
                visited = visited + 1
                local lane = lane_in(entry)
                if wanted(lane) then found[#found + 1] = lane end
                if #found == MAX_LANES or visited == MAX_VISITS then return found, entry end
            end
            from = #page > 0 and '(' .. page[#page]
        until #page < PAGE
    end
    return found, ''
end

local starting = 0

local function admit_any(lane)
    if gates then return gates.admit(lane) end
    starting = starting + 1
    return starting <= claim.start
end

local function admit(lane)
    local type_name = parts_of(lane)[3]
    if left[type_name] == 0 then return nil end
    local starts = admit_any(lane)
    if starts ~= nil and left[type_name] then left[type_name] = left[type_name] - 1 end
    return starts
end

local lanes, walked_to = walk()
local picked, last_tenant
local in_line = #lanes == 1 and claim.limit > 0 and not gates and not claim.max_priority
    and not left[parts_of(lanes[1])[3]]
if in_line then
    picked, last_tenant = first_of(lanes[1], claim)
else
    picked, last_tenant = choose(lanes, claim, admit)
end

-- What only a job that was claimed before can have: how it came back, and what earlier leases left.
local function earlier(key)
    local had = call('HMGET', key, 'returns', 'progress_percent', 'progress_message', 'attempts',
        'snoozes', 'rescues', 'timeout_ms', 'checkpoint', 'progress')
    if had[2] or had[3] or had[9] then
        call('HDEL', key, 'progress_percent', 'progress_message', 'progress')
    end
    return tonumber(had[1]) or 0, {unpack(had, 4, 8)}
end

local answer = {NOW, '', last_tenant, walked_to, {}}
local run, length = nil, 0

-- Adds a lease to the answer: to the last run, if it has the same in common.
local function grant(pick, found, fence, started, had)
    if not run or had or run[1] ~= pick.lane or run[2] ~= found[6] or run[3] ~= found[8]
        or run[4] ~= found[9] or run[5] ~= found[4] or run[6] ~= fence or run[7] ~= started then
        run = {pick.lane, found[6], found[8], found[9], found[4], fence, started, had or {}}
        answer[#answer + 1], length = run, 8
    end
    run[length + 1], run[length + 2] = pick.member, found[7]
    length = length + 2
end

-- Leases one job, unless it may not be: what a hand changed meanwhile is passed over. Its id, and
-- 1 if it started.
local function lease(pick)
    local id = id_of(pick.member)
    local key = job_key(id)
    local found = call('HMGET', key, 'status', 'fence', 'updated_at', 'expires_at', 'key_scope',
        'doc', 'payload', 'created_at', 'queued_at')
    if not MAY_CLAIM[found[1]] then
        leave_lane(pick.lane, pick.member)
        return nil
    end
    local expires_at = tonumber(found[4])
    if expires_at and expires_at <= now then return nil end
    local fence, starts, had = (tonumber(found[2]) or 0) + 1, pick.starts, nil
    if fence > 1 then
        local returns
        returns, had = earlier(key)
        starts = returns >= TRIES_UNMARKED or starts
        if not starts then call('HDEL', key, 'started_at') end
    end
    -- Of a first lease that starts, updated_at stays missing: started_at stands for it.
    if not starts then
        call('HSET', key, 'status', 'in_progress', 'fence', fence, 'lease_owner', claim.owner,
            'updated_at', NOW)
    elseif found[3] then
        call('HSET', key, 'status', 'in_progress', 'fence', fence, 'lease_owner', claim.owner,
            'updated_at', NOW, 'started_at', NOW)
    else
        call('HSET', key, 'status', 'in_progress', 'fence', fence, 'lease_owner', claim.owner,
            'started_at', NOW)
    end
    if expires_at then call('ZREM', PREFIX .. 'expiring', id) end
    if found[5] == 'while_pending' then release_key(call('HGET', key, 'key'), id, found[5]) end
    record_change(id, pick.lane, 'in_progress', fence)
    local started = starts and 1 or 0
    grant(pick, found, fence, started, had)
    return id, started
end

local taken, given_to, count, granted = {}, {}, 0, {}

-- What is leased of one lane, to be written all at once.
local function taken_of(lane)
    local group = taken[lane]
    if not group then
        local lasts = (claim.type_lease_ms or {})[parts_of(lane)[3]] or claim.lease_ms
        group = {members = {}, count = 0, started = 0, lease_until = int(monotonic + lasts)}
        taken[lane] = group
    end
    return group
end

for _, pick in ipairs(picked) do
    local id, started = lease(pick)
    if id then
        local group = taken_of(pick.lane)
        group.count = group.count + 1
        group.members[group.count] = pick.member
        group.started = group.started + started
        given_to[2 * count + 1] = group.lease_until
        given_to[2 * count + 2] = id
        count = count + 1
        if gates then granted[count] = {id = id, lane = pick.lane} end
    end
end
for lane, group in pairs(taken) do
    if in_line and count == #picked then
        call('ZREMRANGEBYRANK', lane_key(lane), 0, count - 1)
    else
        many('ZREM', lane_key(lane), group.members)
    end
    count_place(lane, 'queued', -group.count)
    count_place(lane, 'in_progress', group.count)
    count_lease(lane, claim.owner, group.count, group.started)
    forget_empty_lane(lane)
end
if count > 0 then
    call('SADD', PREFIX .. 'owners', claim.owner)
    many('ZADD', PREFIX .. 'leases:' .. claim.owner, given_to, 2)
end

local wait = nil
local due = redis.call('ZRANGE', PREFIX .. 'due', 0, 0, 'WITHSCORES')
if due[2] then wait = math.max(0, tonumber(due[2]) - now) end
if gates then
    answer[5] = gates.write(granted)
    local retry = gates.retry_in()
    if retry then wait = math.min(retry, wait or retry) end
end
if wait then answer[2] = int(wait) end
if next(depth_sums) then finish() end
