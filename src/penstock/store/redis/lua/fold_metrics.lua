-- Make one coarse step of its fine ones: the sum of counters, the largest of gauges. Always of the
-- whole step, so that folding twice changes nothing.
--
-- needs: common
-- ARGV[4] the fine resolution in milliseconds
-- ARGV[5] the coarse one
-- ARGV[6] the coarse step
-- answers how many fine steps it has

despite_full_memory()
local fine, coarse, bucket = ARGV[4], ARGV[5], tonumber(ARGV[6])
local last = '(' .. int(bucket + tonumber(coarse))
local steps = redis.call('ZRANGEBYSCORE', PREFIX .. 'metrics:' .. fine, int(bucket), last)
local folded = {}
for _, step in ipairs(steps) do
    local fields = redis.call('HGETALL', PREFIX .. 'metrics:' .. fine .. ':' .. step)
    for place = 1, #fields, 2 do
        local field, value = fields[place], tonumber(fields[place + 1])
        local known = folded[field] or 0
        folded[field] = string.sub(field, 1, 6) == 'gauge:' and math.max(known, value)
            or known + value
    end
end
local row = {}
for field, value in pairs(folded) do
    row[#row + 1] = field
    row[#row + 1] = int(value)
end
if #row > 0 then
    many('HSET', PREFIX .. 'metrics:' .. coarse .. ':' .. int(bucket), row, 2)
    redis.call('ZADD', PREFIX .. 'metrics:' .. coarse, int(bucket), int(bucket))
end
return #steps
