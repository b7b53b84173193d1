-- Where the jobs of a status are, so that a few among many need not be searched for.
-- needs: common

local MOST_CANDIDATES = 1000
local NONE_IN = {
    pending = {'pending', 'blocked'}, queued = {'queued'}, in_progress = {'in_progress'},
    failed = {'failed'}, paused = {'paused'},
}

local function none_in(places)
    local counted = redis.call('HKEYS', PREFIX .. 'depths')
    for _, field in ipairs(counted) do
        for _, place in ipairs(places) do
            if string.sub(field, 1, #place + 1) == place .. ' ' then return false end
        end
    end
    return true
end

-- The members of sorted sets, or nil when they are too many.
local function members_of(keys, made)
    local total = 0
    for _, key in ipairs(keys) do
        total = total + redis.call('ZCARD', key)
        if total > MOST_CANDIDATES then return nil end
    end
    local found = {}
    for _, key in ipairs(keys) do
        for _, member in ipairs(redis.call('ZRANGE', key, 0, -1)) do
            found[#found + 1] = made and made(member) or member
        end
    end
    return found
end

local function queued_jobs()
    local keys = {}
    for place, lane in ipairs(all_lanes()) do
        keys[place] = lane_key(lane)
    end
    return members_of(keys, id_of)
end

local function leased_jobs()
    local keys = {}
    for place, owner in ipairs(redis.call('SMEMBERS', PREFIX .. 'owners')) do
        keys[place] = PREFIX .. 'leases:' .. owner
    end
    return members_of(keys)
end

-- Ids among which all jobs of a status are, or nil when it is better to look at one after the
-- other.
local function candidates(status)
    if ENDED[status] then return members_of({PREFIX .. 'ended:' .. status}) end
    if NONE_IN[status] and none_in(NONE_IN[status]) then return {} end
    if status == 'queued' then return queued_jobs() end
    if status == 'in_progress' then return leased_jobs() end
    return nil
end

-- {id, seq, id, seq, …} of the candidates below a seq, newest first.
local function newest_first(ids, below)
    local rows = {}
    for first = 1, #ids, 1000 do
        local last = math.min(first + 999, #ids)
        local seqs = redis.call('ZMSCORE', PREFIX .. 'jobs', unpack(ids, first, last))
        for place, seq in ipairs(seqs) do
            local number = tonumber(seq or '')
            if number and number < below then rows[#rows + 1] = {ids[first + place - 1], number} end
        end
    end
    table.sort(rows, function(a, b) return a[2] > b[2] end)
    local flat = {}
    for _, row in ipairs(rows) do
        flat[#flat + 1] = row[1]
        flat[#flat + 1] = int(row[2])
    end
    return flat
end
