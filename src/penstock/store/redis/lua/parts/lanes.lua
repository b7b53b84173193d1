-- The lanes of queued jobs: their names, their order, and who stands in them.
-- needs: ground

local function lane_key(lane)
    return PREFIX .. 'lane:' .. lane
end

local known_lanes = {}

-- {queue, tenant, type, limit key}
local function parts_of(lane)
    local parts = known_lanes[lane]
    if not parts then
        parts = cjson.decode(lane)
        known_lanes[lane] = parts
    end
    return parts
end

-- The JSON strings in a lane, as they are spelled there.
local function texts_of(lane)
    local texts, first, place = {}, 2, 3
    while place < #lane do
        local char = string.sub(lane, place, place)
        if char == '"' then
            texts[#texts + 1] = string.sub(lane, first, place)
            first, place = place + 2, place + 3
        else
            place = place + (char == '\\' and 2 or 1)
        end
    end
    return texts
end

local listed = {}

-- A lane as it stands in `lanes`, by its type.
local function listed_as(lane)
    if not listed[lane] then
        local queue, type_name = string.match(lane, '^%[("[^"\\]*"),"[^"\\]*",("[^"\\]*"),')
        if not queue then
            local texts = texts_of(lane)
            queue, type_name = texts[1], texts[3]
        end
        listed[lane] = type_name .. queue .. '\n' .. lane
    end
    return listed[lane]
end

local function lane_in(entry)
    return string.match(entry, '\n(.*)$')
end

-- Every lane that may have jobs.
local function all_lanes()
    local lanes = redis.call('ZRANGE', PREFIX .. 'lanes', 0, -1)
    for place, entry in ipairs(lanes) do lanes[place] = lane_in(entry) end
    return lanes
end

local function rank_of(due, priority)
    return due + (priority - 1) * PRIORITY_STEP_MS
end

local function member_of(id, priority)
    return string.char(47 + priority) .. id
end

local function id_of(member)
    return string.sub(member, 2)
end

local function priority_of(member)
    return string.byte(member) - 47
end

local function enter_lane(lane, rank, member)
    redis.call('ZADD', PREFIX .. 'lanes', 0, listed_as(lane))
    redis.call('ZADD', lane_key(lane), int(rank), member)
end

local function forget_empty_lane(lane)
    if redis.call('EXISTS', lane_key(lane)) == 0 then
        redis.call('ZREM', PREFIX .. 'lanes', listed_as(lane))
    end
end

local function leave_lane(lane, member)
    redis.call('ZREM', lane_key(lane), member)
    forget_empty_lane(lane)
end
