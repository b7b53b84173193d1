-- Write or refresh what a worker says of itself.
--
-- needs: common
-- writes: room, workers, workers:seen, workers:since
-- ARGV[4] the owner
-- ARGV[5] JSON
-- answers 1

despite_full_memory()
redis.call('HSETNX', PREFIX .. 'workers:since', ARGV[4], NOW)
redis.call('HSET', PREFIX .. 'workers', ARGV[4], ARGV[5])
redis.call('ZADD', PREFIX .. 'workers:seen', NOW, ARGV[4])
return 1
