-- Write what is to be known about a move.
-- needs: common
-- writes: moves
-- ARGV[4]… two arguments each: name, value or '' to remove it
-- answers 1

for first = 4, #ARGV, 2 do
    if ARGV[first + 1] == '' then
        redis.call('HDEL', PREFIX .. 'moves', ARGV[first])
    else
        redis.call('HSET', PREFIX .. 'moves', ARGV[first], ARGV[first + 1])
    end
end
return 1
