-- Lines of jobs that share an order key: each waits for the one before it.
-- needs: common edges
--
-- A job joins its line when it could run, not before. Its place is an edge of kind `order` to the
-- job before it, closed like any other edge.
--
-- lines            hash: JSON ["tenant","order key"] -> the last job in line

local function stand_behind(id, before)
    open_edge(id, before, 'order', '', IN_LINE)
end

-- Stands in line; whether the job is the first. One that is not waits for one job more.
local function join_line(id, line)
    local before = redis.call('HGET', PREFIX .. 'lines', line)
    redis.call('HSET', PREFIX .. 'lines', line, id)
    if not before then return true end
    stand_behind(id, before)
    return false
end

-- The job before this one, while it waits for it.
local function ahead_of(id)
    for _, field in ipairs(redis.call('HKEYS', PREFIX .. 'edges:' .. id)) do
        local parent, kind = split_edge(field)
        if kind == 'order' then
            local outcome = edge_state(redis.call('HGET', PREFIX .. 'edges:' .. id, field))
            if not outcome then return parent end
        end
    end
    return nil
end

-- Takes ended jobs out of their lines; who stood before those that had not got to the front.
local function leave_lines(ids)
    local before = {}
    if redis.call('EXISTS', PREFIX .. 'lines') == 0 then return before end
    local stepped_out, jobs = {}, {}
    for _, id in ipairs(ids) do
        local job = look(id)
        if job and job.line then
            local ahead = ahead_of(id)
            if ahead then
                drop_edge(id, ahead, 'order', '')
                change_waiting(job, -1)
            end
            stepped_out[id] = ahead or false
            jobs[#jobs + 1] = job
        end
    end
    for _, job in ipairs(jobs) do
        local ahead = stepped_out[job.id]
        while ahead and stepped_out[ahead] ~= nil do ahead = stepped_out[ahead] end
        if redis.call('HGET', PREFIX .. 'lines', job.line) == job.id then
            if ahead then
                redis.call('HSET', PREFIX .. 'lines', job.line, ahead)
            else
                redis.call('HDEL', PREFIX .. 'lines', job.line)
            end
        end
        before[job.id] = ahead or nil
    end
    return before
end
