-- What every script begins with: the layout of the keys. All of it can be lost and is rebuilt.
--
-- KEYS[1]    the prefix; every other key is made from it
--   state      hash: filled_at (by the clock here), doubts (how often something became ready that
--              nobody named), answered (how many of them the last filling knew of), gated, crowded,
--              due and expires (when PostgreSQL has something to stage or to expire)
--   lanes      set: the lanes that may have ready jobs
--   lane:LANE  zset: member by rank; the first ready jobs of a lane
--   horizons   hash: LANE -> the rank from which on jobs may be missing; none: all are here
--   refilling  who fills now; kept for a while afterwards, so that nobody does so too often
--   wake       the channel on which every change is told
--
-- A lane is the JSON text ["queue","tenant","type","limit key"]. A member is the digit priority - 1
-- and the id.

local PREFIX = KEYS[1]
local STATE, LANES, HORIZONS = PREFIX .. 'state', PREFIX .. 'lanes', PREFIX .. 'horizons'
local FORGOTTEN_SECONDS = 3600
local PIECE = 2000

local function lane_key(lane)
    return PREFIX .. 'lane:' .. lane
end

local function horizon_of(lane)
    return tonumber(redis.call('HGET', HORIZONS, lane) or nil) or math.huge
end

-- Cuts a window that grew too long; what is cut off is found again by a filling.
local function trim(lane, most)
    local key = lane_key(lane)
    if redis.call('ZCARD', key) <= 2 * most then return end
    redis.call('ZREMRANGEBYRANK', key, most, -1)
    redis.call('HSET', HORIZONS, lane, redis.call('ZRANGE', key, -1, -1, 'WITHSCORES')[2])
end

-- Adds {rank, member, rank, member, …} to a lane, as far as its window reaches.
local function enter(lane, entries, most)
    local horizon, near = horizon_of(lane), {}
    for place = 1, #entries, 2 do
        if tonumber(entries[place]) < horizon then
            near[#near + 1] = entries[place]
            near[#near + 1] = entries[place + 1]
        end
    end
    if #near == 0 then return end
    local key = lane_key(lane)
    for first = 1, #near, PIECE do
        redis.call('ZADD', key, unpack(near, first, math.min(first + PIECE - 1, #near)))
    end
    redis.call('SADD', LANES, lane)
    redis.call('EXPIRE', key, FORGOTTEN_SECONDS)
    trim(lane, most)
end

local function sooner(field, time)
    if not time or time == cjson.null then return end
    local known = tonumber(redis.call('HGET', STATE, field) or nil)
    if not known or tonumber(time) < known then redis.call('HSET', STATE, field, time) end
end

-- Takes in what a process told: ready jobs by lane, times, and whether it could not name them all.
local function put(told)
    if told.distrust then
        for _, lane in ipairs(redis.call('SMEMBERS', LANES)) do
            redis.call('DEL', lane_key(lane))
        end
        redis.call('DEL', STATE, LANES, HORIZONS)
    end
    if told.doubt then redis.call('HINCRBY', STATE, 'doubts', 1) end
    -- Where nothing was filled yet, the first filling finds them.
    if redis.call('HEXISTS', STATE, 'filled_at') == 0 then return end
    sooner('due', told.due)
    sooner('expires', told.expires)
    for lane, entries in pairs(told.ready) do enter(lane, entries, told.most) end
end
