-- Stage and expire what fell due, then lease the most urgent jobs, each under a new fence.
--
-- needs: common edges lines release bury passes turns gates
-- ARGV[4]  the claim as JSON: owner, types (each as JSON text), limit, start, lease_ms,
--          type_lease_ms, queues, max_priority, ahead, last_tenant and walked_to (as the last
--          answer said, or '')
-- answers  {now, milliseconds until to ask again or '', last tenant, walked to, slots as {scope,
--          name, slots} each, leases…}; a lease is {member, fence, 1 if started, expires_at, lane, progress, doc,
--          payload, attempts, snoozes, rescues, timeout_ms, checkpoint, created_at, queued_at}

despite_full_memory()
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
expire(STAGE_FIRST)
stage(STAGE_FIRST)

local gates = nil
if redis.call('EXISTS', PREFIX .. 'pauses', PREFIX .. 'limits', PREFIX .. 'breakers') > 0 then
    gates = open_gates(claim)
end

local function wanted(lane)
    return (not queues or queues[parts_of(lane)[1]]) and (not gates or gates.open(lane))
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

local function admit(lane)
    if gates then return gates.admit(lane) end
    starting = starting + 1
    return starting <= claim.start
end

local lanes, walked_to = walk()
local picked, last_tenant = choose(lanes, claim, admit)

local taken, given_to = {}, {}

-- Leases one job, unless it may not be: what a hand changed meanwhile is passed over.
local function lease(pick)
    local id = id_of(pick.member)
    local key = job_key(id)
    local found = redis.call('HMGET', key, 'status', 'fence', 'returns', 'expires_at', 'key_scope',
        'progress_percent', 'doc', 'payload', 'attempts', 'snoozes', 'rescues', 'timeout_ms',
        'checkpoint', 'created_at', 'queued_at')
    if not MAY_CLAIM[found[1]] then
        leave_lane(pick.lane, pick.member)
        return nil
    end
    local expires_at = tonumber(found[4])
    if expires_at and expires_at <= now then return nil end
    local fence = (tonumber(found[2]) or 0) + 1
    local starts = pick.starts or (tonumber(found[3]) or 0) >= TRIES_UNMARKED
    redis.call('HSET', key, 'status', 'in_progress', 'fence', fence, 'lease_owner', claim.owner,
        'updated_at', NOW, 'started_at', starts and NOW or '')
    if expires_at then redis.call('ZREM', PREFIX .. 'expiring', id) end
    if found[5] == 'while_pending' then release_key(redis.call('HGET', key, 'key'), id, found[5]) end
    if found[6] then redis.call('HDEL', key, 'progress_percent', 'progress_message') end
    found[1], found[2], found[3], found[5] = pick.member, fence, starts and 1 or 0, pick.lane
    return found
end

local answer = {NOW, '', last_tenant, walked_to, {}}
local lengths = claim.type_lease_ms or {}
for _, pick in ipairs(picked) do
    local found = lease(pick)
    if found then
        answer[#answer + 1] = found
        local lane = pick.lane
        taken[lane] = taken[lane] or {}
        table.insert(taken[lane], pick.member)
        local length = lengths[parts_of(lane)[3]] or claim.lease_ms
        given_to[#given_to + 1] = int(monotonic + length)
        given_to[#given_to + 1] = id_of(pick.member)
        count_lease(lane, claim.owner, 1, found[3])
    end
end
for lane, members in pairs(taken) do
    many('ZREM', lane_key(lane), members)
    count_place(lane, 'queued', -#members)
    count_place(lane, 'in_progress', #members)
    forget_empty_lane(lane)
end
if #given_to > 0 then
    redis.call('SADD', PREFIX .. 'owners', claim.owner)
    many('ZADD', PREFIX .. 'leases:' .. claim.owner, given_to, 2)
end

local wait = nil
local due = redis.call('ZRANGE', PREFIX .. 'due', 0, 0, 'WITHSCORES')
if due[2] then wait = math.max(0, tonumber(due[2]) - now) end
if gates then
    local granted = {}
    for place = 6, #answer do
        granted[#granted + 1] = {id = id_of(answer[place][1]), lane = answer[place][5]}
    end
    answer[5] = gates.write(granted)
    local retry = gates.retry_in()
    if retry then wait = math.min(retry, wait or retry) end
end
if wait then answer[2] = int(wait) end
if next(depth_sums) then finish() end
return answer
