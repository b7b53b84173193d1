-- Rates: how many jobs started under each in the latest while, as model/controls.py counts them.
--
-- needs: common

local STEPS = 64

-- {milliseconds, count} each, oldest first.
local function read_starts(scope, name)
    local stored = redis.call('HGET', PREFIX .. 'rates', scope .. '\n' .. name)
    return stored and cjson.decode(stored) or {}
end

-- What still counts; a time far ahead was written before the clock was put back.
local function recent_starts(starts, interval_ms)
    local recent, taken = {}, 0
    for _, start in ipairs(starts) do
        if now - interval_ms < start[1] and start[1] <= now + interval_ms then
            recent[#recent + 1] = start
            taken = taken + start[2]
        end
    end
    return recent, taken
end

-- Milliseconds until one more may start; nil when one may now.
local function rate_frees_in(recent, taken, capacity, interval_ms)
    if taken < capacity then return nil end
    for _, start in ipairs(recent) do
        taken = taken - start[2]
        if taken < capacity then return math.max(1, start[1] + interval_ms - now) end
    end
    return nil
end

-- Near times are put together under the later one, so that the record stays short and never
-- forgets a start too early.
local function write_starts(scope, name, recent, interval_ms, count)
    local step = math.max(1, math.floor(interval_ms / STEPS))
    local last = recent[#recent]
    if last and math.floor(now / step) == math.floor(last[1] / step) then
        count = count + last[2]
        recent[#recent] = nil
        last = recent[#recent]
    end
    recent[#recent + 1] = {math.max(now, last and last[1] or now), count}
    local texts = {}
    for place, start in ipairs(recent) do
        texts[place] = '[' .. int(start[1]) .. ',' .. int(start[2]) .. ']'
    end
    local stored = '[' .. table.concat(texts, ',') .. ']'
    redis.call('HSET', PREFIX .. 'rates', scope .. '\n' .. name, stored)
end
