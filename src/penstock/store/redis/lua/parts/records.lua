-- Records: small documents of the server, under a kind and a name. Read by documents.py, which
-- knows the same order of fields.
-- needs: common

local function record_field(kind, name)
    return kind .. '\n' .. name
end

-- {name, revision, updated_at, expires_at or '-', document}, or nil where there is none or where
-- it has expired.
local function record(field)
    local found = redis.call('HGET', PREFIX .. 'records', field)
    if not found then return nil end
    local revision, updated_at, expires_at, document =
        string.match(found, '^(%d+) (%d+) (%S+) (.*)$')
    if expires_at ~= '-' and tonumber(expires_at) <= now then return nil end
    return {string.match(field, '\n(.*)$'), revision, updated_at, expires_at, document}
end

local function write_record(field, revision, expires_at, document)
    local value = table.concat({revision, NOW, expires_at, document}, ' ')
    redis.call('HSET', PREFIX .. 'records', field, value)
    redis.call('ZADD', PREFIX .. 'records:names', 0, field)
    if expires_at == '-' then
        redis.call('ZREM', PREFIX .. 'records:expiring', field)
    else
        redis.call('ZADD', PREFIX .. 'records:expiring', expires_at, field)
    end
end

local function delete_records(fields)
    many('HDEL', PREFIX .. 'records', fields)
    many('ZREM', PREFIX .. 'records:names', fields)
    many('ZREM', PREFIX .. 'records:expiring', fields)
end
