-- Writes jobs and puts them into their lane.
--
-- KEYS[1]  prefix; job:ID is a hash, lane a zset of ids by rank
-- ARGV[1]  now in milliseconds
-- ARGV[2]  rank
-- ARGV[3]… id, document, payload of each job
-- Answers nothing.

local now, rank = ARGV[1], ARGV[2]
local queued = {}
for i = 3, #ARGV, 3 do
    redis.call('HSET', KEYS[1] .. 'job:' .. ARGV[i], 'doc', ARGV[i + 1], 'payload', ARGV[i + 2],
        'created_at', now, 'status', 'queued', 'queued_at', now)
    queued[#queued + 1] = rank
    queued[#queued + 1] = ARGV[i]
end
redis.call('ZADD', KEYS[1] .. 'lane', unpack(queued))
