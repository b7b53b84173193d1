-- Jobs that say themselves when they are removed after their end.
--
-- needs: ground lanes
--
-- Their field `keep` is JSON [completed, failed], each null, how many milliseconds they are kept
-- (FOREVER: for good), or below 0 how many of their type are. Once one has ended, it is in
--   ended:own               zset: id by the time to remove it, +inf while that is not known
--   ended:last:STATUS \n TYPE   zset: id by completed_at, of those that are kept by their number

local KEPT_AS = {completed = 1, dead_letter = 2}
local FOREVER = 10000000000000

local function own_keep(keep, status)
    local own = KEPT_AS[status] and cjson.decode(keep)[KEPT_AS[status]]
    return type(own) == 'number' and own or nil
end

local function last_of(status, lane)
    return PREFIX .. 'ended:last:' .. status .. '\n' .. parts_of(lane)[3]
end

-- A job has ended; those of its type that are now too many can go.
local function keep_own(id, lane, status, keep, ended_at)
    local own = own_keep(keep, status)
    if not own then return end
    local removed_at = '+inf'
    if own >= 0 and own < FOREVER then removed_at = int(ended_at + own) end
    redis.call('ZADD', PREFIX .. 'ended:own', removed_at, id)
    if own >= 0 then return end
    local last = last_of(status, lane)
    redis.call('ZADD', last, int(ended_at), id)
    for _, old in ipairs(redis.call('ZRANGE', last, 0, own - 1)) do
        redis.call('ZADD', PREFIX .. 'ended:own', NOW, old)
        redis.call('ZREM', last, old)
    end
end

-- A job that had ended lives again, or is gone.
local function forget_own(id, lane, status, keep)
    if not own_keep(keep, status) then return end
    redis.call('ZREM', PREFIX .. 'ended:own', id)
    redis.call('ZREM', last_of(status, lane), id)
end
