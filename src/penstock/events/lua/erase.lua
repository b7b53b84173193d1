-- Delete entries so that their bytes go, too: XDEL only marks them beside others that stay. The
-- stream is written anew, with its groups and with what those have not acknowledged.
-- KEYS: stream, name of the new one until it takes its place. ARGV: ids.
local function fields_of(flat)
    local fields = {}
    for i = 1, #flat, 2 do
        fields[flat[i]] = flat[i + 1]
    end
    return fields
end

local deleted = 0
for first = 1, #ARGV, 1000 do  -- Lua hands on a few thousand values at once
    local last = math.min(first + 999, #ARGV)
    deleted = deleted + redis.call('XDEL', KEYS[1], unpack(ARGV, first, last))
end
if deleted == 0 then
    return 0
end
redis.call('DEL', KEYS[2])
for _, entry in ipairs(redis.call('XRANGE', KEYS[1], '-', '+')) do
    redis.call('XADD', KEYS[2], entry[1], unpack(entry[2]))
end
local last = fields_of(redis.call('XINFO', 'STREAM', KEYS[1]))['last-generated-id']
if redis.call('EXISTS', KEYS[2]) == 0 then
    redis.call('XGROUP', 'CREATE', KEYS[2], 'none', '0', 'MKSTREAM')
    redis.call('XGROUP', 'DESTROY', KEYS[2], 'none')
end
redis.call('XSETID', KEYS[2], last)
for _, flat in ipairs(redis.call('XINFO', 'GROUPS', KEYS[1])) do
    local group = fields_of(flat)
    redis.call('XGROUP', 'CREATE', KEYS[2], group['name'], group['last-delivered-id'])
    local pending = redis.call('XPENDING', KEYS[1], group['name'], '-', '+', group['pending'] + 1)
    for _, each in ipairs(pending) do
        redis.call('XCLAIM', KEYS[2], group['name'], each[2], 0, each[1],
            'IDLE', each[3], 'RETRYCOUNT', each[4], 'FORCE', 'JUSTID')
    end
end
redis.call('RENAME', KEYS[2], KEYS[1])
return deleted
