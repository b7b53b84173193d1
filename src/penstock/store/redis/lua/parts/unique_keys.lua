-- Unique keys: who holds them, and for how long.
-- needs: ground

-- The job that holds a unique key, or nil.
local function holder_of(key)
    local held = redis.call('HGET', PREFIX .. 'keys', key)
    if not held then return nil end
    local scope, expires_at, id = string.match(held, '^(%S+) (%S+) (.*)$')
    if expires_at ~= '-' and tonumber(expires_at) <= now then return nil end
    return id, scope
end

local function take_key(key, id, scope, window_ms)
    local expires_at = '-'
    if scope == 'window' then
        expires_at = int(now + (window_ms or 0))
        redis.call('ZADD', PREFIX .. 'keys:expiring', expires_at, key)
    else
        redis.call('ZREM', PREFIX .. 'keys:expiring', key)
    end
    redis.call('HSET', PREFIX .. 'keys', key, scope .. ' ' .. expires_at .. ' ' .. id)
end

local RELEASED_AT_END = {while_pending = true, until_done = true}

-- Lets go of a key that a job holds only until it is done (or, at its claim, only until then).
local function release_key(key, id, scope)
    if not RELEASED_AT_END[scope] then return end
    local holder, held_as = holder_of(key)
    if holder == id and RELEASED_AT_END[held_as] then redis.call('HDEL', PREFIX .. 'keys', key) end
end
