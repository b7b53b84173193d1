-- What decides whether a job runs now, but for gates and workers.
--
-- needs: common edges linked pictures
-- reads: edges:…, job:…, keys, lane:…, lanes, leases:…, pauses:jobs
-- ARGV[4] the job
-- ARGV[5] how many open edges to show
-- answers nothing for an unknown job; otherwise {now; its picture; its open edges; its own pause;
--         how many jobs of its lane go first; how many other tenants have jobs in its queue; the
--         job that holds the key it would need to be requeued}

local COUNTED_TO = 1000
local MAY_REQUEUE = {from requeue}

local function ahead_in_lane(job)
    local lane = lane_key(job.lane)
    local rank = redis.call('ZSCORE', lane, member_of(job.id, job.priority))
    return rank and math.min(COUNTED_TO, redis.call('ZCOUNT', lane, '-inf', '(' .. rank)) or 0
end

local function other_tenants(job)
    local own, seen, count = parts_of(job.lane), {}, 0
    for _, lane in ipairs(all_lanes()) do
        local parts = parts_of(lane)
        if parts[1] == own[1] and parts[2] ~= own[2] and not seen[parts[2]]
            and count < COUNTED_TO and redis.call('EXISTS', lane_key(lane)) == 1 then
            seen[parts[2]] = true
            count = count + 1
        end
    end
    return count
end

local function key_holder(job)
    if not job.key or not MAY_REQUEUE[job.status] or job.key_scope == 'while_pending' then
        return false
    end
    local holder = holder_of(job.key)
    return holder ~= job.id and holder or false
end

local job = look(ARGV[4])
if not job then return false end
local queued = job.status == 'queued'
return {
    NOW, picture(job.id),
    job.waiting_on > 0 and parents_of_job(job.id, tonumber(ARGV[5]), true) or {},
    redis.call('HGET', PREFIX .. 'pauses:jobs', job.id),
    queued and ahead_in_lane(job) or 0, queued and other_tenants(job) or 0, key_holder(job),
}
