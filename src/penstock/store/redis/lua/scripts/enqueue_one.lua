-- Insert one job that may run at once and asks for nothing else: no key, no line, no edges.
--
-- Whatever else an enqueue may ask for is enqueue.lua's. Nothing is needed from other files: making
-- their functions would cost more than all of this.
--
-- later: changes gives record_change
-- reads: followers:…
-- writes: changes:…, depths, depths:…, job:…, jobs, lane:…, lanes, seq, wake
-- KEYS[1]  the prefix of the namespace
-- ARGV[1]  now in milliseconds, or '' for the server's clock
-- ARGV[4]  id
-- ARGV[5]  payload
-- ARGV[6]  doc
-- ARGV[7]  lane
-- ARGV[8]  the lane as it stands in `lanes`
-- ARGV[9]  queue
-- ARGV[10] priority
-- ARGV[11] tenant, or ''
-- answers  1, or 0 when the id is known

local PREFIX, call, id, lane, priority = KEYS[1], redis.call, ARGV[4], ARGV[7], ARGV[10]
local DEFAULT_PRIORITY, PRIORITY_STEP_MS = '5', 3600000
local now = ARGV[1]
if now == '' then
    local time = call('TIME')
    now = time[1] .. string.sub('00000' .. time[2], -6, -4)
end

-- The number of a known id is left out; to ask first would cost every other job more.
if call('ZADD', PREFIX .. 'jobs', 'NX', call('INCR', PREFIX .. 'seq'), id) == 0 then return 0 end
local key = PREFIX .. 'job:' .. id
call('HSET', key, 'status', 'queued', 'payload', ARGV[5], 'queued_at', now, 'doc', ARGV[6],
    'lane', lane, 'created_at', now)
if priority ~= DEFAULT_PRIORITY then call('HSET', key, 'priority', priority) end
call('ZADD', PREFIX .. 'lanes', 0, ARGV[8])
call('ZADD', PREFIX .. 'lane:' .. lane, now + (priority - 1) * PRIORITY_STEP_MS,
    string.char(47 + priority) .. id)
call('HINCRBY', PREFIX .. 'depths', 'queued ' .. ARGV[9], 1)
if ARGV[11] ~= '' then
    call('HINCRBY', PREFIX .. 'depths:' .. ARGV[11], 'queued ' .. ARGV[9], 1)
end
if call('EXISTS', PREFIX .. 'followers:queued') == 1 then
    later_changes()(id, lane, 'queued', 0)
end
call('PUBLISH', PREFIX .. 'wake', '')
return 1
