-- Set limits; what code declares leaves an operator's alone.
--
-- needs: common
-- writes: depths, depths:…, leased, limits, limits:depth, metrics:live, metrics:totals,
--   metrics:…, started, wake
-- ARGV[4]… three arguments each: field of `limits`, 1 for a depth, JSON of the limit
-- answers 1

for first = 4, #ARGV, 3 do
    local field, limit = ARGV[first], ARGV[first + 2]
    local key = PREFIX .. (ARGV[first + 1] == '1' and 'limits:depth' or 'limits')
    local known = redis.call('HGET', key, field)
    if not known or cjson.decode(limit)[3] or not cjson.decode(known)[3] then
        redis.call('HSET', key, field, limit)
    end
end
finish()
return 1
