-- Copy every key as it is at this moment, so that a backup can read them while everything goes on.
-- needs: common
-- reads: every key
-- writes: copies:…
-- ARGV[4]  the prefix of the copies, which begins with that of the namespace and `copies:`
-- ARGV[5]  how many milliseconds the copies are kept at most
-- answers  how many keys were copied

local COPIES = PREFIX .. 'copies:'
local copied, cursor = 0, '0'
repeat
    local found = redis.call('SCAN', cursor, 'MATCH', PREFIX .. '*', 'COUNT', 1000)
    cursor = found[1]
    for _, key in ipairs(found[2]) do
        if string.sub(key, 1, #COPIES) ~= COPIES then
            local copy = ARGV[4] .. string.sub(key, #PREFIX + 1)
            if redis.call('COPY', key, copy) == 1 then
                redis.call('PEXPIRE', copy, ARGV[5])
                copied = copied + 1
            end
        end
    end
until cursor == '0'
return copied
