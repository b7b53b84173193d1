-- A group of dead letters as readers see it. Read by dead.py, which knows the same order.
-- needs: common

local function first_and_last(key)
    local letters = PREFIX .. 'dead:'
    local first = redis.call('ZRANGE', key, 0, 0)[1]
    local newest = redis.call('ZREVRANGE', key, 0, 0)[1]
    return redis.call('HGET', letters .. first, 'created_at'), newest,
        redis.call('HMGET', letters .. newest, 'error', 'error_code', 'created_at')
end

-- {TYPE \n FINGERPRINT, error, error_code, letters, open letters, when the first and the newest
-- died, the newest one's id}, or nil for a group without letters.
local function group(scope, name)
    local key = PREFIX .. 'group:' .. scope .. '\n' .. name
    local count = redis.call('ZCARD', key)
    if count == 0 then return nil end
    local open = redis.call('ZCARD', PREFIX .. 'group:open:' .. scope .. '\n' .. name)
    local first_at, newest_id, newest = first_and_last(key)
    return {name, newest[1], newest[2], count, open, first_at, newest[3], newest_id}
end
