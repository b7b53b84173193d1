-- Add events of the log to the stream that mirrors it, each under its sequence, which is its first
-- value. One that is there already, because somebody else mirrors too, is passed over.
-- KEYS: stream. ARGV: how many values an event has, their names, the values of every event in turn.
local width = tonumber(ARGV[1])
local entry = {}
for n = 1, width do
    entry[2 * n - 1] = ARGV[1 + n]
end
for before = 1 + width, #ARGV - width, width do
    for n = 1, width do
        entry[2 * n] = ARGV[before + n]
    end
    local added = redis.pcall('XADD', KEYS[1], ARGV[before + 1] .. '-0', unpack(entry))
    if type(added) == 'table' and added.err and not string.find(added.err, 'equal or smaller') then
        return added
    end
end
return 0
