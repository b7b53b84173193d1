-- Schedules, as they are kept. Read by schedules.py, which knows the same order of fields.
-- needs: common
--
-- schedule:ID  hash: doc (JSON, all that is put), name (field of `schedules`), enabled (1 or 0),
--              next_run_at, expires_at, last_run_at (missing or empty: none), run_count, revision,
--              created_at, updated_at

local KEPT = {
    'doc', 'enabled', 'next_run_at', 'run_count', 'last_run_at', 'created_at', 'updated_at',
    'revision',
}

local function schedule_key(id)
    return PREFIX .. 'schedule:' .. id
end

-- {id, the fields above}, or nil for an unknown one.
local function schedule(id)
    local found = redis.call('HMGET', schedule_key(id), unpack(KEPT))
    if not found[1] then return nil end
    return {id, unpack(found)}
end

local function schedule_named(name)
    local id = redis.call('HGET', PREFIX .. 'schedules', name)
    return id and schedule(id), id
end

local function index_schedule(id)
    local found = redis.call('HMGET', schedule_key(id), 'enabled', 'next_run_at', 'expires_at')
    if found[1] == '1' and found[2] and found[2] ~= '' then
        redis.call('ZADD', PREFIX .. 'schedules:due', found[2], id)
    else
        redis.call('ZREM', PREFIX .. 'schedules:due', id)
    end
    if found[3] and found[3] ~= '' then
        redis.call('ZADD', PREFIX .. 'schedules:expiring', found[3], id)
    else
        redis.call('ZREM', PREFIX .. 'schedules:expiring', id)
    end
end

-- Changes a schedule that is as it was seen (any revision will do where none is told).
local function change_schedule(id, enabled, revision, ...)
    local seen = redis.call('HMGET', schedule_key(id), 'enabled', 'revision')
    if seen[1] ~= enabled or (revision ~= '' and seen[2] ~= revision) then return false end
    redis.call('HINCRBY', schedule_key(id), 'revision', 1)
    redis.call('HSET', schedule_key(id), 'updated_at', NOW, ...)
    index_schedule(id)
    return true
end

local function delete_schedule(id)
    local name = redis.call('HGET', schedule_key(id), 'name')
    if not name then return false end
    redis.call('DEL', schedule_key(id))
    redis.call('HDEL', PREFIX .. 'schedules', name)
    redis.call('ZREM', PREFIX .. 'schedules:due', id)
    redis.call('ZREM', PREFIX .. 'schedules:expiring', id)
    return true
end
