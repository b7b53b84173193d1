-- The order of a claim: tenants take turns, and each tenant's lanes are one line by rank.
--
-- needs: common

local MIN_CHUNK = 8

-- A lane's jobs by rank, fetched in chunks as they are asked for: {rank, member} each, then nil.
local function candidates(lane, max_priority, chunk)
    local found, place, offset = {}, 1, 0
    local function fill()
        found = redis.call('ZRANGE', lane_key(lane), offset, offset + chunk - 1, 'WITHSCORES')
        if offset == 0 and #found == 0 then forget_empty_lane(lane) end
        offset, place = offset + chunk, 1
    end
    fill()
    return function()
        while true do
            local member = found[place]
            if not member then
                if #found < 2 * chunk then return nil end
                fill()
            else
                place = place + 2
                if not max_priority or priority_of(member) <= max_priority then
                    return tonumber(found[place - 1]), member
                end
            end
        end
    end
end

local function goes_first(one, other)
    if one.rank ~= other.rank then return one.rank < other.rank end
    return one.member < other.member
end

local function sift_down(heap, place)
    while true do
        local least, left = place, 2 * place
        for child = left, math.min(left + 1, #heap) do
            if goes_first(heap[child], heap[least]) then least = child end
        end
        if least == place then return end
        heap[place], heap[least] = heap[least], heap[place]
        place = least
    end
end

-- Takes the head of the heap to its next job, or out.
local function advance(heap, is_open)
    local head = heap[1]
    local rank, member
    if is_open then rank, member = head.following() end
    if rank then
        head.rank, head.member = rank, member
    else
        heap[1] = heap[#heap]
        heap[#heap] = nil
    end
    sift_down(heap, 1)
end

local function line_up(lanes, claim, chunk)
    local heap = {}
    for _, lane in ipairs(lanes) do
        local following = candidates(lane, claim.max_priority, chunk)
        local rank, member = following()
        if rank then
            heap[#heap + 1] = {rank = rank, member = member, lane = lane, following = following}
        end
    end
    for place = math.floor(#heap / 2), 1, -1 do sift_down(heap, place) end
    return heap
end

-- The next job of a tenant that may be leased; a lane that admits no more is left out.
local function next_of(heap, admit)
    while #heap > 0 do
        local head = heap[1]
        local pick = {member = head.member, lane = head.lane, starts = admit(head.lane)}
        advance(heap, pick.starts ~= nil)
        if pick.starts ~= nil then return pick end
    end
    return nil
end

local function in_turn(lanes, last_tenant)
    local tenants, names = {}, {}
    for _, lane in ipairs(lanes) do
        local tenant = parts_of(lane)[2]
        if not tenants[tenant] then
            tenants[tenant] = {}
            names[#names + 1] = tenant
        end
        table.insert(tenants[tenant], lane)
    end
    table.sort(names, function(one, other)
        local one_had, other_had = one <= last_tenant, other <= last_tenant
        if one_had ~= other_had then return other_had end
        return one < other
    end)
    return names, tenants
end

-- What to lease, in the order it should start: {member, lane, starts} each, and whose turn it was.
local function choose(lanes, claim, admit)
    local names, tenants = in_turn(lanes, claim.last_tenant)
    local chunk = math.max(MIN_CHUNK, math.floor(claim.limit / math.max(1, #lanes)))
    local turns, picked, last = {}, {}, claim.last_tenant
    for place, name in ipairs(names) do turns[place] = {name = name} end
    while #turns > 0 and #picked < claim.limit do
        local left = {}
        for _, turn in ipairs(turns) do
            if #picked == claim.limit then break end
            turn.heap = turn.heap or line_up(tenants[turn.name], claim, chunk)
            local pick = next_of(turn.heap, admit)
            if pick then
                picked[#picked + 1] = pick
                last = turn.name
                left[#left + 1] = turn
            end
        end
        turns = left
    end
    return picked, last
end

-- One lane and nothing in its way: no turns to take.
local function first_of(lane, claim)
    local members = redis.call('ZRANGE', lane_key(lane), 0, claim.limit - 1)
    if #members == 0 then forget_empty_lane(lane) end
    for place, member in ipairs(members) do
        members[place] = {member = member, lane = lane, starts = place <= claim.start}
    end
    return members, #members > 0 and parts_of(lane)[2] or claim.last_tenant
end
