-- Jobs that are past their retention.
-- needs: common

-- The first jobs of a status that ended longer ago than they are kept; some ids are spared, and those
-- that say themselves when they are removed.
local function past_retention(status, kept_ms, limit, spared)
    local before = '(' .. int(now - kept_ms)
    local old, passed = {}, 0
    local any_own = redis.call('EXISTS', PREFIX .. 'ended:own') == 1
    local function is_spared(id)
        return spared[id] or any_own and redis.call('ZSCORE', PREFIX .. 'ended:own', id)
    end
    while #old < limit do
        local ids = redis.call('ZRANGEBYSCORE', PREFIX .. 'ended:' .. status, '-inf', before,
            'LIMIT', passed + #old, limit)
        if #ids == 0 then break end
        for _, id in ipairs(ids) do
            if is_spared(id) then passed = passed + 1
            elseif #old < limit then old[#old + 1] = id end
        end
    end
    return old
end
