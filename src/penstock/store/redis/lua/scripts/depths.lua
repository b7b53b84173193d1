-- How much stands in each queue, and since when the oldest queued job of each lane is due. Looks at
-- a bounded number of lanes; Python asks on from there.
--
-- needs: common
-- reads: lane:…, lanes, what ARGV names
-- ARGV[4] the entry of `lanes` to continue after, or '' for the first look
-- ARGV[5] `depths`, or that of a tenant
-- answers {the entry to continue after, or '' when there are no more; `depths` as names and values,
--          at the first look; {lane, milliseconds since its oldest job fell due} each}

local LANES, LOOKS, AT_ONCE = 100, 1000, 100
local HEAVIEST = 9 * PRIORITY_STEP_MS

-- Where there are many lanes, the first few jobs of each must do.
local share = math.floor(LOOKS / math.min(LANES, redis.call('ZCARD', PREFIX .. 'lanes')))

-- Rank less its handicap is the time a job fell due. The first in rank need not be the oldest, but
-- one much further back cannot be.
local function oldest_due(lane)
    local oldest, offset = nil, 0
    while offset < share do
        local some = math.min(AT_ONCE, share - offset)
        local members = redis.call('ZRANGE', lane_key(lane), offset, offset + some - 1, 'WITHSCORES')
        for place = 1, #members, 2 do
            local rank = tonumber(members[place + 1])
            if oldest and rank - HEAVIEST >= oldest then return oldest end
            local due = rank - (priority_of(members[place]) - 1) * PRIORITY_STEP_MS
            if not oldest or due < oldest then oldest = due end
        end
        if #members < 2 * some then break end
        offset = offset + some
    end
    return oldest
end

local first = ARGV[4] == '' and '-' or '(' .. ARGV[4]
local entries = redis.call('ZRANGEBYLEX', PREFIX .. 'lanes', first, '+', 'LIMIT', 0, LANES)
local waits = {}
for _, entry in ipairs(entries) do
    local lane = lane_in(entry)
    local oldest = oldest_due(lane)
    if oldest then waits[#waits + 1] = {lane, int(math.max(0, now - oldest))} end
end
return {
    #entries == LANES and entries[LANES] or '',
    ARGV[4] == '' and redis.call('HGETALL', PREFIX .. ARGV[5]) or {}, waits,
}
