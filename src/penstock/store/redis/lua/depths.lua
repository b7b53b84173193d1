-- How much stands in each queue, and since when the oldest queued job of each is due.
--
-- needs: common
-- answers {`depths` as names and values; {lane, milliseconds since its oldest job fell due} each}

local AT_ONCE, LOOKS = 1000, 10000
local HEAVIEST = 9 * PRIORITY_STEP_MS

-- Rank less its handicap is the time a job fell due. The first in rank need not be the oldest, but
-- one much further back cannot be.
local function oldest_due(lane)
    local oldest, offset = nil, 0
    while offset < LOOKS do
        local members = redis.call('ZRANGE', lane_key(lane), offset, offset + AT_ONCE - 1,
            'WITHSCORES')
        for place = 1, #members, 2 do
            local rank = tonumber(members[place + 1])
            if oldest and rank - HEAVIEST >= oldest then return oldest end
            local due = rank - (priority_of(members[place]) - 1) * PRIORITY_STEP_MS
            if not oldest or due < oldest then oldest = due end
        end
        if #members < 2 * AT_ONCE then break end
        offset = offset + AT_ONCE
    end
    return oldest
end

local waits = {}
for _, lane in ipairs(all_lanes()) do
    local oldest = oldest_due(lane)
    if oldest then waits[#waits + 1] = {lane, int(math.max(0, now - oldest))} end
end
return {redis.call('HGETALL', PREFIX .. 'depths'), waits}
