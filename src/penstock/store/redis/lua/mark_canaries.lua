-- Remember which jobs are replayed ahead of their group of dead letters.
--
-- needs: common
-- ARGV[4]  the group, or '' to forget it
-- ARGV[5]… ids
-- answers how many there are

local marked = 0
for place = 5, #ARGV do
    local key = PREFIX .. 'dead:' .. ARGV[place]
    if redis.call('EXISTS', key) == 1 then
        redis.call('HSET', key, 'canary_of', ARGV[4])
        marked = marked + 1
    end
end
return marked
