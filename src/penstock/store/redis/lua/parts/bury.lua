-- Dead letters: what is kept of a job that could not be done.
--
-- needs: common letter_lists

local KEPT_EXECUTIONS, FENCES_BACK = 50, 200

-- The newest executions of a job as JSON [[fence, execution], …].
local function executions_of(job)
    local names, fences = {}, {}
    for fence = job.fence, math.max(0, job.fence - FENCES_BACK), -1 do
        fences[#fences + 1] = fence
        names[#names + 1] = 'x' .. int(fence)
    end
    local kept = {}
    for place, text in ipairs(redis.call('HMGET', job_key(job.id), unpack(names))) do
        if text and #kept < KEPT_EXECUTIONS then
            kept[#kept + 1] = '[' .. int(fences[place]) .. ',' .. text .. ']'
        end
    end
    return '[' .. table.concat(kept, ',') .. ']'
end

-- Keeps a dead letter of a job whose own row is written already. `failure` has reason, code,
-- error and fingerprint; `job` has the counts and the fence as they are now.
local function keep_dead_letter(job, failure)
    local key = PREFIX .. 'dead:' .. job.id
    local row = redis.call('HMGET', job_key(job.id), 'doc', 'payload', 'checkpoint')
    unlist_letter(job.id)
    redis.call('HDEL', key, 'resolved_by', 'resolved_at')
    redis.call('HSET', key, 'lane', job.lane, 'doc', row[1] or '[]', 'payload', row[2] or '',
        'checkpoint', row[3] or '', 'priority', int(job.priority),
        'scheduled_at', int(job.scheduled_at), 'made_at', int(job.created_at),
        'reason', failure.reason, 'error', failure.error, 'error_code', failure.code,
        'fingerprint', failure.fingerprint, 'attempts', int(job.attempts),
        'rescues', int(job.rescues), 'executions', executions_of(job),
        'resolution', 'pending', 'created_at', NOW)
    local death = redis.call('INCR', PREFIX .. 'dead:seq')
    redis.call('ZADD', PREFIX .. 'dead', death, job.id)
    list_letter(job.id, death)
end
