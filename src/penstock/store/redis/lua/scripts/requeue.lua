-- Give ended jobs a fresh budget, all of them or none, each due a while after the last.
--
-- needs: common edges letter_lists
-- reads: followers:…
-- writes: canaries:…, changes:…, children:…, dead, dead:…, depths, depths:…, due, edges:open,
--   edges:…, ended:last:…, ended:own, ended:…, expiring, group:open:…, group:…, groups:open:…,
--   groups:…, inputs:…, job:…, keys, keys:expiring, lane:…, lanes, leased, leases:…,
--   letters:open, letters:open:…, metrics:live, metrics:totals, metrics:…, room, started,
--   stops:…, wake
-- ARGV[4]… two arguments each: id, milliseconds until it is due
-- answers 1

despite_full_memory()
local MAY_REQUEUE = {from requeue}
local FELL_WITH_PARENT = '"code":"ParentFailed"'

-- Why a job cannot be requeued; `taken` are the keys that this call takes first.
local function refusal_of(job, taken)
    if not MAY_REQUEUE[job.status] then
        return {'refused', 'IllegalTransition', job.status, 'requeue', job.id}
    end
    if job.key and job.key_scope ~= 'while_pending' then
        local holder = taken[job.key] or holder_of(job.key)
        if holder and holder ~= job.id then
            return {'refused', 'KeyTaken', job.key, holder}
        end
    end
    return nil
end

local function requeue(job, due)
    if job.key and job.key_scope == 'until_done' then take_key(job.key, job.id, 'until_done') end
    leave(job)
    job.scheduled_at, job.expires_at = due, nil
    redis.call('HSET', job_key(job.id), 'status', 'pending', 'scheduled_at', int(due),
        'updated_at', NOW)
    redis.call('HDEL', job_key(job.id), 'attempts', 'snoozes', 'rescues', 'returns', 'expires_at',
        'result', 'error', 'error_details', 'started_at', 'completed_at', 'failed_at', 'queued_at',
        'cancel_requested_at', 'cancel_reason', 'progress_percent', 'progress_message', 'progress')
    enter(job, 'pending')
    local letter = PREFIX .. 'dead:' .. job.id
    if OPEN[redis.call('HGET', letter, 'resolution')] then
        relist_letter(job.id, 'resolved')
        redis.call('HSET', letter, 'resolution', 'resolved', 'resolved_at', NOW)
        redis.call('HSETNX', letter, 'notes', 'requeued')
    end
end

-- Whether a child waits for a parent again. One that somebody requeued by hand, and that has been in
-- the queue since, is left alone.
local function waits_again(child)
    if not child then return false end
    if MAY_REQUEUE[child.status] then return true end
    return (child.status == 'pending' or child.status == 'paused') and not child.queued_at
end

-- Opens the edges again that closed because a parent ended badly; adds their children, as they
-- stand then, to a list and to jobs[id].
local function reopen_edges(parent, children, jobs)
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', PREFIX .. 'children:' .. parent, 1, 1)) do
        local id, kind, argument = split_edge(member)
        local field = edge_field(parent, kind, argument)
        local outcome, _, terms = edge_state(redis.call('HGET', PREFIX .. 'edges:' .. id, field))
        if (outcome == 'cancelled' or outcome == 'dead') and restores(terms) then
            local child = jobs[id] or look(id)
            if waits_again(child) then
                open_edge(id, parent, kind, argument, terms)
                if kind == 'data' then redis.call('HDEL', PREFIX .. 'inputs:' .. id, field) end
                change_waiting(child, 1)
                if not jobs[id] then children[#children + 1] = child end
                jobs[id] = child
            end
        end
    end
end

-- Only a child that ended because of a parent, and whose other parents are not against it.
local function restorable(child)
    if not MAY_REQUEUE[child.status] then return false end
    if not string.find(child.error_details or '', FELL_WITH_PARENT, 1, true) then return false end
    for _, value in ipairs(redis.call('HVALS', PREFIX .. 'edges:' .. child.id)) do
        local outcome = edge_state(value)
        if outcome and outcome ~= 'satisfied' then return false end
    end
    return refusal_of(child, {}) == nil
end

-- Has children that ended because of a requeued parent wait for it again.
local function restore_dependents(frontier)
    while #frontier > 0 do
        local children, jobs, restored = {}, {}, {}
        for _, parent in ipairs(frontier) do reopen_edges(parent, children, jobs) end
        for _, child in ipairs(children) do
            if restorable(child) then
                requeue(child, math.max(now, child.scheduled_at))
                restored[#restored + 1] = child.id
            end
        end
        frontier = restored
    end
end

local jobs, taken, known = {}, {}, {}
for place = 4, #ARGV, 2 do
    local job = known[ARGV[place]] or look(ARGV[place])
    if not job then return {'refused', 'JobNotFound', ARGV[place]} end
    if known[job.id] then return {'refused', 'IllegalTransition', 'pending', 'requeue', job.id} end
    local refusal = refusal_of(job, taken)
    if refusal then return refusal end
    if job.key and job.key_scope == 'until_done' then taken[job.key] = job.id end
    known[job.id] = job
    jobs[#jobs + 1] = job
end

local ids = {}
for place, job in ipairs(jobs) do
    requeue(job, now + tonumber(ARGV[2 * place + 3]))
    ids[place] = job.id
end
restore_dependents(ids)
finish()
return 1
