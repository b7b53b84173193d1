-- The ways a lease ends, other than by completion. Shared by settle.lua and rescue.lua.
--
-- needs: common bury
-- An ending is a table: id, fence, kind, facts (JSON text: started_at, wait, duration, cpu, memory),
-- started_at, and by its kind failure, retry_in_ms, spends_attempt, timeout_ms, delay_ms, told,
-- reason, max_rescues, started, lost. `job` is the job as it was looked at, whose lease matched.

local STOPPED = 'cancelled while it ran'
local NOTHING_TOLD = 'null,null,null,null]'

-- Keeps the execution, unless its fence has one; before the job's own row changes.
local function keep_ran(job, ending, status, told)
    local rest = '"' .. status .. '",' .. ending.facts .. ',' .. (told or NOTHING_TOLD)
    local text = ran(cjson.encode(job.lease_owner or ''), rest)
    redis.call('HSETNX', job_key(job.id), 'x' .. int(job.fence), text)
end

-- Writes the job's row and takes it from its lease to its new place.
local function end_lease(job, status, fields)
    leave(job)
    local row = {'status', status, 'lease_owner', '', 'updated_at', NOW}
    for name, value in pairs(fields) do
        row[#row + 1] = name
        row[#row + 1] = value
    end
    redis.call('HSET', job_key(job.id), unpack(row))
    job.scheduled_at = tonumber(fields.scheduled_at) or job.scheduled_at
    job.lease_owner, job.fence = nil, tonumber(fields.fence) or job.fence
    enter(job, status)
    if ENDED[status] and job.key then release_key(job.key, job.id, job.key_scope) end
end

-- `taken` says how an execution is called whose lease is taken away, which the fence tells.
local function stop(job, ending, reason, taken)
    if ending.started ~= false then keep_ran(job, ending, taken or 'cancelled', ending.lost) end
    local started_at = ending.started ~= false and int(ending.started_at) or ''
    end_lease(job, 'cancelled', {
        error = job.cancel_reason or reason, completed_at = NOW, started_at = started_at,
        fence = int(job.fence + (taken and 1 or 0)),
    })
    return 'cancelled'
end

local function bury(job, ending, counts, taken)
    keep_ran(job, ending, taken or 'dead', ending.failure.told)
    job.attempts = job.attempts + (counts.attempts or 0)
    job.rescues = job.rescues + (counts.rescues or 0)
    end_lease(job, 'dead_letter', {
        error = ending.failure.error, error_details = ending.failure.details,
        completed_at = NOW, failed_at = NOW, started_at = int(ending.started_at),
        attempts = int(job.attempts), rescues = int(job.rescues),
        fence = int(job.fence + (taken and 1 or 0)),
    })
    keep_dead_letter(job, ending.failure)
    return 'dead'
end

local function hand_back(job, ending, rescued)
    local fields = {fence = int(job.fence + 1), started_at = ''}
    if rescued then
        fields.rescues = int(job.rescues + 1)
        fields.error, fields.error_details = ending.failure.error, ending.failure.details
    else
        fields.returns = int(job.returns + 1)
    end
    end_lease(job, 'queued', fields)
end

local endings = {}

function endings.failed(job, ending)
    if job.cancel_requested_at then return stop(job, ending, STOPPED) end
    keep_ran(job, ending, 'failed', ending.failure.told)
    local spent = ending.spends_attempt and 1 or 0
    local fields = {
        attempts = int(job.attempts + spent), snoozes = int(job.snoozes + 1 - spent),
        error = ending.failure.error, error_details = ending.failure.details,
        scheduled_at = int(now + ending.retry_in_ms), failed_at = NOW,
        started_at = int(ending.started_at),
    }
    if type(ending.timeout_ms) == 'number' then fields.timeout_ms = int(ending.timeout_ms) end
    end_lease(job, 'failed', fields)
    return 'failed'
end

function endings.snoozed(job, ending)
    if job.cancel_requested_at then return stop(job, ending, STOPPED) end
    keep_ran(job, ending, 'snoozed', ending.told)
    end_lease(job, 'pending', {
        snoozes = int(job.snoozes + 1), scheduled_at = int(now + ending.delay_ms),
        started_at = int(ending.started_at),
    })
    return 'snoozed'
end

function endings.cancelled(job, ending)
    return stop(job, ending, ending.reason)
end

function endings.buried(job, ending)
    return bury(job, ending, {attempts = 1})
end

function endings.crashed(job, ending)
    if job.cancel_requested_at then return stop(job, ending, STOPPED) end
    if job.rescues + 1 >= ending.max_rescues then return bury(job, ending, {rescues = 1}) end
    keep_ran(job, ending, 'crashed', ending.failure.told)
    hand_back(job, ending, true)
    return 'crashed'
end

function endings.handed_back(job, ending)
    if job.cancel_requested_at then return stop(job, ending, STOPPED) end
    if ending.started then keep_ran(job, ending, 'interrupted') end
    hand_back(job, ending, false)
    return 'handed_back'
end
