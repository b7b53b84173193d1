-- Add sealed entries to the audit log, if they continue the chain as it now ends.
--
-- needs: common
-- writes: audit, room
-- ARGV[4]  the seq of the first
-- ARGV[5]  the hash that it says is before it
-- ARGV[6]… the entries as JSON arrays
-- answers  1, or 0 when they do not, and nothing is written

-- Nothing an operator does goes unrecorded, making room least of all.
despite_full_memory()
local HASH = 9
local log, first = PREFIX .. 'audit', tonumber(ARGV[4])
local last = redis.call('ZREVRANGE', log, 0, 0, 'WITHSCORES')
if first ~= (tonumber(last[2]) or 0) + 1 then return 0 end
if last[1] and cjson.decode(last[1])[HASH] ~= ARGV[5] then return 0 end
for place = 6, #ARGV do redis.call('ZADD', log, int(first + place - 6), ARGV[place]) end
return 1
