-- What is counted while a script runs, and written at its end.
-- needs: ground lanes

local sums, depth_sums, lease_sums, start_sums = {}, {}, {}, {}

-- Counts something for the figures; `label` is JSON ["type","queue"], made by Python.
local function measure(label, name, by)
    local field = name .. '\n' .. label
    sums[field] = (sums[field] or 0) + (by or 1)
end

-- The figures of a job of which only the lane is at hand.
local function label_of(lane)
    local parts = parts_of(lane)
    return cjson.encode({parts[3], parts[1]})
end

local function count_place(lane, place, by)
    local field = place .. ' ' .. parts_of(lane)[1]
    depth_sums[field] = (depth_sums[field] or 0) + by
end

local function count_lease(lane, owner, leases, started)
    local field = lane .. '\n' .. owner
    lease_sums[field] = (lease_sums[field] or 0) + leases
    start_sums[field] = (start_sums[field] or 0) + started
end

local function add_all(key, fields)
    for field, by in pairs(fields) do
        if by ~= 0 and redis.call('HINCRBY', key, field, by) == 0 then
            redis.call('HDEL', key, field)
        end
    end
end

-- Writes what was counted; enough for a script whose change nobody waits for.
local function write_counts()
    add_all(PREFIX .. 'depths', depth_sums)
    add_all(PREFIX .. 'leased', lease_sums)
    add_all(PREFIX .. 'started', start_sums)
    if next(sums) then
        local bucket = int(math.floor(now / FINE_MS) * FINE_MS)
        redis.call('ZADD', PREFIX .. 'metrics:' .. FINE_MS, bucket, bucket)
        add_all(PREFIX .. 'metrics:' .. FINE_MS .. ':' .. bucket, sums)
    end
end

-- Wakes who listens, too; every other script that changed something ends so.
local function finish()
    write_counts()
    redis.call('PUBLISH', PREFIX .. 'wake', '')
end
