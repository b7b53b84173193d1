-- Staging and expiring, which a claim does a little of before it looks at the lanes.
--
-- needs: common edges lines release bury

local EXPIRED = {failure expired}
local MAY_EXPIRE, MAY_STAGE = {from expire}, {from stage}

-- Dead-letters waiting jobs past their expiry; their ids, the longest expired first.
local function expire(limit)
    local over = redis.call('ZRANGEBYSCORE', PREFIX .. 'expiring', '-inf', NOW, 'LIMIT', 0, limit)
    local ended = {}
    for _, id in ipairs(over) do
        local job = look(id)
        if job and MAY_EXPIRE[job.status] then
            leave(job)
            redis.call('HSET', job_key(id), 'status', 'dead_letter', 'error', EXPIRED.error,
                'error_details', EXPIRED.details, 'completed_at', NOW, 'failed_at', NOW,
                'updated_at', NOW)
            enter(job, 'dead_letter')
            if job.key then release_key(job.key, id, job.key_scope) end
            keep_dead_letter(job, EXPIRED)
            measure_end(job.lane, 'dead', job.attempts)
            ended[#ended + 1] = id
        else
            redis.call('ZREM', PREFIX .. 'expiring', id)
        end
    end
    end_jobs(ended)
    return ended
end

local function stage_one(job)
    leave(job)
    if job.line and not job.queued_at and not join_line(job.id, job.line) then
        job.waiting_on = job.waiting_on + 1
        redis.call('HSET', job_key(job.id), 'queued_at', NOW, 'updated_at', NOW,
            'waiting_on', int(job.waiting_on))
        enter(job, job.status)
        return 0
    end
    redis.call('HSET', job_key(job.id), 'status', 'queued', 'queued_at', NOW, 'updated_at', NOW)
    enter(job, 'queued')
    return 1
end

-- Writes what is to be staged all at once: `lanes` has {rank, member, …} and how many were of each
-- status.
local function enter_lanes(lanes)
    for lane, members in pairs(lanes) do
        for status in pairs(MAY_STAGE) do
            if members[status] then count_place(lane, status, -members[status]) end
        end
        count_place(lane, 'queued', #members / 2)
        call('ZADD', PREFIX .. 'lanes', 0, listed_as(lane))
        many('ZADD', lane_key(lane), members, 2)
    end
end

-- Queues waiting jobs that fell due; how many. One with an order key joins its line first, and
-- may have to wait there.
local function stage(limit)
    local due = call('ZRANGEBYSCORE', PREFIX .. 'due', '-inf', NOW, 'LIMIT', 0, limit)
    local queued, joining, gone, lanes = 0, {}, {}, {}
    for _, id in ipairs(due) do
        local key = job_key(id)
        local status, lane, priority, scheduled_at, created_at, line, queued_at, fence = unpack(
            call('HMGET', key, 'status', 'lane', 'priority', 'scheduled_at', 'created_at', 'line',
                'queued_at', 'fence'))
        if not MAY_STAGE[status] then
            gone[#gone + 1] = id
        elseif (line or '') ~= '' and (queued_at or '') == '' then
            joining[#joining + 1] = look(id)
        else
            call('HSET', key, 'status', 'queued', 'queued_at', NOW, 'updated_at', NOW)
            record_change(id, lane, 'queued', fence or 0)
            priority = tonumber(priority) or DEFAULT_PRIORITY
            local rank = rank_of(tonumber(scheduled_at) or tonumber(created_at) or 0, priority)
            local members = lanes[lane]
            if not members then
                members = {}
                lanes[lane] = members
            end
            members[#members + 1], members[#members + 2] = int(rank), member_of(id, priority)
            members[status] = (members[status] or 0) + 1
            gone[#gone + 1] = id
            queued = queued + 1
        end
    end
    many('ZREM', PREFIX .. 'due', gone)
    enter_lanes(lanes)
    for _, job in ipairs(as_they_join(joining)) do queued = queued + stage_one(job) end
    return queued
end
