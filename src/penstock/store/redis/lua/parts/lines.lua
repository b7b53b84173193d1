-- Lines of jobs that share an order key: each waits for the one before it.
--
-- needs: common edges
-- A job joins its line when it could run, not before. Its place is an edge of kind `order` to the
-- job before it, closed like any other edge.

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

-- Jobs in the order in which they join their lines: as they fell due, and then as they were made.
local function as_they_join(jobs)
    for _, job in ipairs(jobs) do
        job.seq = tonumber(redis.call('ZSCORE', PREFIX .. 'jobs', job.id)) or 0
    end
    table.sort(jobs, function(a, b)
        if a.scheduled_at ~= b.scheduled_at then return a.scheduled_at < b.scheduled_at end
        return a.seq < b.seq
    end)
    return jobs
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

-- Where each of the jobs that step out of line would find somebody ahead who stays: false for
-- nobody. `stepped_out[id]` is who stood before it.
local function nearest_ahead(stepped_out)
    local found = {}
    for id in pairs(stepped_out) do
        local path, ahead = {}, id
        while ahead and found[ahead] == nil and stepped_out[ahead] ~= nil do
            path[#path + 1] = ahead
            ahead = stepped_out[ahead]
        end
        if ahead and found[ahead] ~= nil then ahead = found[ahead] end
        for _, passed in ipairs(path) do found[passed] = ahead end
    end
    return found
end

-- Takes ended jobs out of their lines; who stood before those that had not got to the front.
local function leave_lines(ids)
    if redis.call('EXISTS', PREFIX .. 'lines') == 0 then return {} end
    local stepped_out, line_of = {}, {}
    for _, id in ipairs(ids) do
        local line = redis.call('HGET', job_key(id), 'line')
        if line then
            local ahead = ahead_of(id)
            if ahead then
                drop_edge(id, ahead, 'order', '')
                change_waiting(look(id), -1)
            end
            stepped_out[id] = ahead or false
            line_of[id] = line
        end
    end
    local before = {}
    for id, ahead in pairs(nearest_ahead(stepped_out)) do
        local line = line_of[id]
        if redis.call('HGET', PREFIX .. 'lines', line) == id then
            if ahead then
                redis.call('HSET', PREFIX .. 'lines', line, ahead)
            else
                redis.call('HDEL', PREFIX .. 'lines', line)
            end
        end
        before[id] = ahead or nil
    end
    return before
end
