-- What is counted while a script runs, and written at its end.
-- needs: ground lanes

local sums, longest, depth_sums, lease_sums, start_sums = {}, {}, {}, {}, {}
local tenant_depth_sums = {}

-- Functions to be called then: what is to be done once for all that a script changed.
local at_the_end = {}

-- Adds to a counter, called NAME \n JSON ["type","queue"]. Of durations the longest is kept, too.
local function gather(field, by)
    if string.sub(field, 1, 12) == 'duration_max' then
        longest[field] = math.max(longest[field] or 0, by)
    else
        sums[field] = (sums[field] or 0) + by
    end
end

local labels = {}

-- Counts something for the figures: of all jobs, and once more of those of a tenant with a name.
local function measure(lane, name, by)
    local queue, tenant, type_name = unpack(parts_of(lane), 1, 3)
    labels[lane] = labels[lane] or '\n' .. cjson.encode({type_name, queue})
    gather(name .. labels[lane], by or 1)
    if tenant ~= '' and name ~= 'started' and string.sub(name, 1, 9) ~= 'attempts:' then
        gather(name .. '@' .. tenant .. labels[lane], by or 1)
    end
end

-- Counts a job that ended, how it did and after how many attempts.
local function measure_end(lane, name, attempts)
    measure(lane, name)
    measure(lane, 'attempts:' .. (attempts > 10 and 'more' or int(attempts)))
end

local function count_place(lane, place, by)
    local parts = parts_of(lane)
    local field = place .. ' ' .. parts[1]
    depth_sums[field] = (depth_sums[field] or 0) + by
    if parts[2] ~= '' then
        local own = tenant_depth_sums[parts[2]] or {}
        own[field] = (own[field] or 0) + by
        tenant_depth_sums[parts[2]] = own
    end
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

-- Keeps the longest durations.
local function keep_longest(key)
    for field, ms in pairs(longest) do
        if ms > tonumber(redis.call('HGET', key, field) or '-1') then
            redis.call('HSET', key, field, int(ms))
        end
    end
end

-- Whether a figure is counted since the beginning: of all jobs, and neither gauge nor maximum.
local function lasts(field)
    local name = string.match(field, '^(.*)\n') or field
    return not (string.sub(name, 1, 6) == 'gauge:' or name == 'duration_max'
        or string.find(name, '@', 1, true))
end

-- Adds the counters of a fine step to those since the beginning, or takes them out again.
local function add_to_totals(bucket, sign)
    local fields = redis.call('HGETALL', PREFIX .. 'metrics:' .. FINE_MS .. ':' .. bucket)
    for place = 1, #fields, 2 do
        if lasts(fields[place]) then
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
    for tenant, own in pairs(tenant_depth_sums) do add_all(PREFIX .. 'depths:' .. tenant, own) end
    add_all(PREFIX .. 'leased', lease_sums)
    add_all(PREFIX .. 'started', start_sums)
    if next(sums) then
        local bucket = int(math.floor(now / FINE_MS) * FINE_MS)
        local live = redis.call('GET', PREFIX .. 'metrics:live')
        if live ~= bucket then turn_to_step(bucket, live) end
        add_all(PREFIX .. 'metrics:' .. FINE_MS .. ':' .. bucket, sums)
        keep_longest(PREFIX .. 'metrics:' .. FINE_MS .. ':' .. bucket)
    end
end

-- Wakes who listens, too; every other script that changed something ends so.
local function finish()
    write_counts()
    redis.call('PUBLISH', PREFIX .. 'wake', '')
end
