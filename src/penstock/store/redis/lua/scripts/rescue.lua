-- Take away leases that ran out, or all leases of an owner known to be dead.
--
-- needs: common edges lines release bury endings
-- reads: followers:…
-- writes: canaries:…, changes:…, children:…, dead, dead:seq, dead:…, depths, depths:…, due,
--   edges:open, edges:…, ended:last:…, ended:own, ended:…, expiring, group:open:…, group:…,
--   groups:open:…, groups:…, inputs:…, job:…, keys, lane:…, lanes, leased, leases:…,
--   letters:open, letters:open:…, lines, metrics:live, metrics:totals, metrics:…, owners,
--   pauses:jobs, room, started, stops:…, wake
-- ARGV[4]  the owner, or '' for all leases that ran out
-- ARGV[5]  the number of rescues that is one too many
-- ARGV[6]  how many at most
-- answers  {id, type, owner, fate} each

despite_full_memory()
local dead_owner, max_rescues, limit = ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6])
local LOST = {failure lost}
local rescued, ended = {}, {}

-- What is told of the execution that the lease stood for.
local function lost_execution(job)
    local started = job.started_at or now
    local waited = started - (job.queued_at or job.created_at)
    local times = {int(started), int(waited), int(now - started), 'null', 'null'}
    return {
        facts = table.concat(times, ','), started_at = started, failure = LOST, lost = LOST.told,
        started = job.started_at ~= nil,
    }
end

local function take_away(job)
    local ending = lost_execution(job)
    if job.cancel_requested_at then
        stop(job, ending, STOPPED, 'lost')
        return 'cancelled'
    end
    if not job.started_at then
        hand_back(job, ending, false)
        return 'untouched'
    end
    if job.rescues + 1 < max_rescues then
        keep_ran(job, ending, 'lost', LOST.told)
        hand_back(job, ending, true)
        return 'rescued'
    end
    bury(job, ending, {rescues = 1}, 'lost')
    return 'dead'
end

local function rescue_from(owner, ids)
    for _, id in ipairs(ids) do
        local job = look(id)
        if job and job.status == 'in_progress' and job.lease_owner == owner then
            local fate = take_away(job)
            measure(job.lane, 'lease_expiries')
            if job.started_at then measure(job.lane, 'started') end
            if fate == 'cancelled' or fate == 'dead' then
                measure_end(job.lane, fate, job.attempts)
                ended[#ended + 1] = id
            end
            rescued[#rescued + 1] = {id, parts_of(job.lane)[3], owner, fate}
        else
            redis.call('ZREM', PREFIX .. 'leases:' .. owner, id)
        end
    end
end

local owners = dead_owner ~= '' and {dead_owner} or redis.call('SMEMBERS', PREFIX .. 'owners')
for _, owner in ipairs(owners) do
    local leases = PREFIX .. 'leases:' .. owner
    local left = limit - #rescued
    if left > 0 then
        local before = dead_owner ~= '' and '+inf' or '(' .. MONOTONIC
        rescue_from(owner, redis.call('ZRANGEBYSCORE', leases, '-inf', before, 'LIMIT', 0, left))
    end
    if redis.call('EXISTS', leases) == 0 then redis.call('SREM', PREFIX .. 'owners', owner) end
end
end_jobs(ended)
if #rescued > 0 then finish() end
return rescued
