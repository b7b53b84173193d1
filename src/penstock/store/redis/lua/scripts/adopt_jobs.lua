-- Write jobs that are moved in here as they are, put each into its place, and move the bookmark.
-- needs: common bookmarks
-- reads: followers:…
-- writes: changes:…, depths, depths:…, due, ended:last:…, ended:own, ended:…, expiring, job:…,
--   jobs, lane:…, lanes, leased, leases:…, metrics:live, metrics:totals, metrics:…, moves,
--   of_parent:…, of_schedule:…, owners, seq, started, stops:…, wake
-- ARGV[8]… jobs: id, JSON of what decides its place (lane, status, priority, waiting_on,
--          scheduled_at, expires_at, lease_owner, lease_left_ms, started, stops, ended_at, keep,
--          parent_job_id, schedule_id; what it has not is left out), how many arguments follow,
--          the fields and values of its hash
-- answers  1, or 0 when the bookmark is somewhere else, and nothing is written

local function lease(job)
    local owner = job.lease_owner or ''
    count_place(job.lane, 'in_progress', 1)
    count_lease(job.lane, owner, 1, job.started and 1 or 0)
    redis.call('SADD', PREFIX .. 'owners', owner)
    redis.call('ZADD', PREFIX .. 'leases:' .. owner, int(monotonic + job.lease_left_ms), job.id)
    if job.stops then redis.call('SADD', PREFIX .. 'stops:' .. owner, job.id) end
end

local function put(job)
    local seq = redis.call('INCR', PREFIX .. 'seq')
    redis.call('ZADD', PREFIX .. 'jobs', seq, job.id)
    if job.parent_job_id then
        redis.call('ZADD', PREFIX .. 'of_parent:' .. job.parent_job_id, seq, job.id)
    end
    if job.schedule_id then
        redis.call('ZADD', PREFIX .. 'of_schedule:' .. job.schedule_id, seq, job.id)
    end
    if ENDED[job.status] then
        redis.call('ZADD', PREFIX .. 'ended:' .. job.status, int(job.ended_at), job.id)
        if job.keep then keep_own(job.id, job.lane, job.status, job.keep, job.ended_at) end
    elseif job.status == 'in_progress' then
        lease(job)
    else
        enter(job, job.status)
    end
end

if not may_go_on() then return 0 end
local at = 8
while ARGV[at] do
    local last = at + 2 + tonumber(ARGV[at + 2])
    if redis.call('EXISTS', job_key(ARGV[at])) == 0 then
        local job = cjson.decode(ARGV[at + 1])
        job.id = ARGV[at]
        redis.call('HSET', job_key(job.id), unpack(ARGV, at + 3, last))
        put(job)
    end
    at = last + 1
end
move_bookmark()
finish()
return 1
