-- Make one coarse step of its fine ones: the sum of counters, the largest of gauges and maxima. From
-- all fine steps, so that folding twice changes nothing. Looks at a bounded number of figures;
-- Python asks on from there.
--
-- needs: common
-- writes: metrics:…, room
-- ARGV[4] the fine resolution in milliseconds
-- ARGV[5] the coarse one
-- ARGV[6] the coarse step
-- ARGV[7] the fine step to continue in, or '' for the first look
-- ARGV[8] the cursor in it
-- answers {the fine step to continue in, or '' when all are folded; the cursor in it}

despite_full_memory()
local LOOKS = 2000
local coarse, bucket = ARGV[5], tonumber(ARGV[6])
local fine = PREFIX .. 'metrics:' .. ARGV[4]
local first = ARGV[7] == '' and int(bucket) or ARGV[7]
local last = '(' .. int(bucket + tonumber(coarse))
local steps = redis.call('ZRANGEBYSCORE', fine, int(bucket), last)
local looks = 0

local function values_in(step, names)
    looks = looks + #names
    return redis.call('HMGET', fine .. ':' .. step, unpack(names))
end

-- What no step before this place has; the rest was folded with those.
local function unfolded(names, place)
    for before = place - 1, 1, -1 do
        if #names == 0 then break end
        local left = {}
        for at, value in ipairs(values_in(steps[before], names)) do
            if not value then left[#left + 1] = names[at] end
        end
        names = left
    end
    return names
end

local function fold(names, place)
    local folded = {}
    for at = place, #steps do
        for which, text in ipairs(values_in(steps[at], names)) do
            local known, value = folded[which] or 0, tonumber(text or '0')
            local by_largest = string.sub(names[which], 1, 6) == 'gauge:'
                or string.sub(names[which], 1, 12) == 'duration_max'
            folded[which] = by_largest and math.max(known, value) or known + value
        end
    end
    local row = {}
    for which, name in ipairs(names) do
        row[2 * which - 1], row[2 * which] = name, int(folded[which])
    end
    redis.call('HSET', PREFIX .. 'metrics:' .. coarse .. ':' .. int(bucket), unpack(row))
    redis.call('ZADD', PREFIX .. 'metrics:' .. coarse, int(bucket), int(bucket))
end

local some = math.max(10, math.floor(LOOKS / (2 * #steps + 1)))
for place, step in ipairs(steps) do
    local cursor = step == ARGV[7] and ARGV[8] or '0'
    while tonumber(step) >= tonumber(first) do
        if looks >= LOOKS then return {step, cursor} end
        local found = redis.call('HSCAN', fine .. ':' .. step, cursor, 'COUNT', some)
        local names = {}
        for at = 1, #found[2], 2 do names[#names + 1] = found[2][at] end
        looks = looks + #names
        names = unfolded(names, place)
        if #names > 0 then fold(names, place) end
        cursor = found[1]
        if cursor == '0' then break end
    end
end
return {'', '0'}
