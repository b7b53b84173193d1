-- Completes what was claimed in the turn before and claims the next.
--
-- KEYS[1]  prefix; besides job:ID and lane there are leases, a zset of ids by lease_until, and
--          ended, a zset of ids by completed_at
-- ARGV[1]  now in milliseconds
-- ARGV[2]  owner
-- ARGV[3]  how many to claim
-- ARGV[4]  lease_until
-- ARGV[5]… id, fence of each job to complete
-- Answers an array of id, fence, document, payload, queued_at of each job claimed.

local now, owner, count, lease_until = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local ids, ended = {}, {}
for i = 5, #ARGV, 2 do
    local key, fence = KEYS[1] .. 'job:' .. ARGV[i], ARGV[i + 1]
    local held = redis.call('HMGET', key, 'fence', 'lease_owner', 'queued_at', 'started_at')
    if held[1] == fence and held[2] == owner then
        redis.call('HSET', key, 'status', 'completed', 'completed_at', now, 'attempts', '1',
            'lease_owner', '', 'x' .. fence,
            '["completed",' .. held[3] .. ',' .. held[4] .. ',' .. now .. ',"' .. owner .. '"]')
        ids[#ids + 1] = ARGV[i]
        ended[#ended + 1] = now
        ended[#ended + 1] = ARGV[i]
    end
end
if #ids > 0 then
    redis.call('ZREM', KEYS[1] .. 'leases', unpack(ids))
    redis.call('ZADD', KEYS[1] .. 'ended', unpack(ended))
end

local answer, leases = {}, {}
local next = redis.call('ZPOPMIN', KEYS[1] .. 'lane', count)
for i = 1, #next, 2 do
    local key = KEYS[1] .. 'job:' .. next[i]
    local job = redis.call('HMGET', key, 'doc', 'payload', 'queued_at', 'fence')
    local fence = string.format('%.0f', (tonumber(job[4]) or 0) + 1)
    redis.call('HSET', key, 'status', 'in_progress', 'fence', fence, 'lease_owner', owner,
        'started_at', now)
    answer[#answer + 1] = {next[i], fence, job[1], job[2], job[3]}
    leases[#leases + 1] = lease_until
    leases[#leases + 1] = next[i]
end
if #leases > 0 then
    redis.call('ZADD', KEYS[1] .. 'leases', unpack(leases))
end
return answer
