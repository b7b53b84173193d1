-- What is counted while a script runs, and written at its end.
-- needs: ground lanes

local sums, depth_sums, lease_sums, start_sums = {}, {}, {}, {}

-- Functions to be called then: what is to be done once for all that a script changed.
local at_the_end = {}

-- Counts something for the figures; `label` is JSON ["type","queue"], made by Python.
local function measure(label, name, by)
    local field = name .. '\n' .. label
    sums[field] = (sums[field] or 0) + (by or 1)
end

-- Counts a job that ended, how it did and after how many attempts.
local function measure_end(label, name, attempts)
    measure(label, name)
    measure(label, 'attempts:' .. (attempts > 10 and 'more' or int(attempts)))
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

-- Adds the counters of a fine step to those since the beginning, or takes them out again.
local function add_to_totals(bucket, sign)
    local fields = redis.call('HGETALL', PREFIX .. 'metrics:' .. FINE_MS .. ':' .. bucket)
    for place = 1, #fields, 2 do
        if string.sub(fields[place], 1, 6) ~= 'gauge:' then
            redis.call('HINCRBY', PREFIX .. 'metrics:totals', fields[place],
                int(sign * tonumber(fields[place + 1])))
        end
    end
end

-- Turns to another step, often a new one. Totals are written once for each step and not with
-- every count; a clock that was set back leads into a step they know already.
local function turn_to_step(bucket, live)
    if live then add_to_totals(live, 1) end
    add_to_totals(bucket, -1)
    redis.call('SET', PREFIX .. 'metrics:live', bucket)
    redis.call('ZADD', PREFIX .. 'metrics:' .. FINE_MS, bucket, bucket)
end

-- Writes what was counted; enough for a script whose change nobody waits for.
local function write_counts()
    for _, act in ipairs(at_the_end) do act() end
    add_all(PREFIX .. 'depths', depth_sums)
    add_all(PREFIX .. 'leased', lease_sums)
    add_all(PREFIX .. 'started', start_sums)
    if next(sums) then
        local bucket = int(math.floor(now / FINE_MS) * FINE_MS)
        local live = redis.call('GET', PREFIX .. 'metrics:live')
        if live ~= bucket then turn_to_step(bucket, live) end
        add_all(PREFIX .. 'metrics:' .. FINE_MS .. ':' .. bucket, sums)
    end
end

-- Wakes who listens, too; every other script that changed something ends so.
local function finish()
    write_counts()
    redis.call('PUBLISH', PREFIX .. 'wake', '')
end
