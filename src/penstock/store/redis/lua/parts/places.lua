-- Where in the order of jobs to begin, found by halving.
-- needs: common

-- The seq below which all jobs are for which `older(id)` holds, or '' when it holds for all; the
-- order must be one that goes by it.
local function seq_above(older)
    local jobs = PREFIX .. 'jobs'
    local low, high = 0, redis.call('ZCARD', jobs)
    while low < high do
        local middle = math.floor((low + high) / 2)
        if older(redis.call('ZRANGE', jobs, middle, middle)[1]) then
            low = middle + 1
        else
            high = middle
        end
    end
    return redis.call('ZRANGE', jobs, low, low, 'WITHSCORES')[2] or ''
end

-- The place of a job, or where it was: ids begin with their time.
local function seq_of(id)
    return redis.call('ZSCORE', PREFIX .. 'jobs', id)
        or seq_above(function(other) return other < id end)
end

local function made_at(id)
    return tonumber(redis.call('HGET', job_key(id), 'created_at') or '') or 0
end
