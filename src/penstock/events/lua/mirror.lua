-- Add events of the log to the stream that mirrors it, each under its sequence, which is its first
-- value. One that is there already, because somebody else mirrors too, is passed over.
-- KEYS: stream. ARGV: the events as msgpack, each a list of values, then the names of these.
local entry = {}
for n = 2, #ARGV do
    entry[2 * n - 3] = ARGV[n]
end
for _, event in ipairs(cmsgpack.unpack(ARGV[1])) do
    for n, value in ipairs(event) do
        entry[2 * n] = value
    end
    local added = redis.pcall('XADD', KEYS[1], event[1] .. '-0', unpack(entry))
    if type(added) == 'table' and added.err and not string.find(added.err, 'equal or smaller') then
        return added
    end
end
return 0
