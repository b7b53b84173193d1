-- Read the same of many jobs at once.
-- needs: common
-- reads: what ARGV names
-- ARGV[4]  HGETALL or LRANGE
-- ARGV[5]  what the keys begin with, such as `job:`
-- ARGV[6]… ids
-- answers  what each key holds

local found = {}
for place = 6, #ARGV do
    local key = PREFIX .. ARGV[5] .. ARGV[place]
    found[place - 5] = ARGV[4] == 'LRANGE' and redis.call('LRANGE', key, 0, -1)
        or redis.call('HGETALL', key)
end
return found
