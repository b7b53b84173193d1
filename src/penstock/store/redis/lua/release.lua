-- The end of a job: what it means for those that wait for it, down to any depth.
-- needs: common bury edges lines inputs
--
-- ARGV[3] is JSON {"parent": {"condition": [outcome, error, error_details]}}. Where a condition on
-- the result of a completed job is not among it, a script answers, before it writes anything,
-- {'decide', parent, condition, result, …} and is called again with the decisions.

local decisions = ARGV[3] and ARGV[3] ~= '' and cjson.decode(ARGV[3]) or {}
local ORPHANED = {cancelled = {failure after_cancelled}, dead_letter = {failure after_dead_letter}}
local ANY_PARENT = '00000000000000000000000000'
local FAILED = {cancel = 'cancelled', dead_letter = 'dead', run = 'satisfied'}
local MAY_CANCEL = {from cancel}
local MAY_ORPHAN = {from orphan}

-- What is told of a job that ended because of a parent.
local function orphaned(parent, status)
    local told = ORPHANED[status]
    local message = string.gsub(told.error, ANY_PARENT, function() return parent end)
    return {
        error = message, details = told.details, reason = told.reason, code = told.code,
        fingerprint = told.fingerprint,
    }
end

local function condition_of(terms)
    local condition = cjson.decode(terms)[4]
    return condition ~= cjson.null and condition or ''
end

local function decision_on(parent, condition)
    return decisions[parent] and decisions[parent][condition]
end

-- Asks for the conditions on the results of completed jobs, results[id], that nobody has looked
-- at; nil when there are none.
local function undecided(results)
    if not next(results) or redis.call('EXISTS', PREFIX .. 'edges:open') == 0 then return nil end
    local asked, ids = {'decide'}, {}
    for id in pairs(results) do ids[#ids + 1] = id end
    for _, parent in ipairs(awaited(ids)) do
        local seen = {}
        for _, member in ipairs(redis.call('ZRANGEBYSCORE', PREFIX .. 'children:' .. parent, 0, 0)) do
            local child, kind, argument = split_edge(member)
            if kind == 'conditional' then
                local field = edge_field(parent, kind, argument)
                local value = redis.call('HGET', PREFIX .. 'edges:' .. child, field)
                local _, _, terms = edge_state(value)
                local condition = condition_of(terms)
                if not seen[condition] and not decision_on(parent, condition) then
                    seen[condition] = true
                    asked[#asked + 1] = parent
                    asked[#asked + 1] = condition
                    asked[#asked + 1] = results[parent]
                end
            end
        end
    end
    return #asked > 1 and asked or nil
end

-- How an edge closes when its parent has ended, and what the child is told unless it may run.
local function decide(edge, status)
    if edge.kind == 'completion' or edge.kind == 'order' then return 'satisfied' end
    if status ~= 'completed' then
        local outcome = FAILED[cjson.decode(edge.terms)[1]]
        return outcome, outcome ~= 'satisfied' and orphaned(edge.parent, status) or nil
    end
    if edge.kind ~= 'conditional' then return 'satisfied' end
    local outcome, message, details = unpack(decision_on(edge.parent, condition_of(edge.terms)))
    if outcome == 'satisfied' then return outcome end
    return outcome, {error = message, details = details}
end

-- Closes every open edge of an ended job; the edges, with how they closed.
local function close_edges_to(parent, closed)
    local found = redis.call('HMGET', job_key(parent), 'status', 'result')
    local status, result = found[1], found[2] and found[2] ~= '' and found[2] or 'null'
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', PREFIX .. 'children:' .. parent, 0, 0)) do
        local child, kind, argument = split_edge(member)
        local field = edge_field(parent, kind, argument)
        local value = redis.call('HGET', PREFIX .. 'edges:' .. child, field)
        local _, _, terms = edge_state(value)
        local edge = {child = child, parent = parent, kind = kind, terms = terms}
        edge.outcome, edge.failure = decide(edge, status)
        close_edge(child, parent, kind, argument, edge.outcome, terms)
        if kind == 'data' then redis.call('HSET', PREFIX .. 'inputs:' .. child, field, result) end
        closed[#closed + 1] = edge
    end
    redis.call('SREM', PREFIX .. 'edges:open', parent)
end

-- Puts the parents' results into the payload of a child that waits for nobody any more. While a
-- parent may come back, the results of the others are kept: they go into one list with its.
local function pass_results(child)
    local key = PREFIX .. 'inputs:' .. child
    local results = redis.call('HGETALL', key)
    if #results == 0 then return end
    local edges, inputs = PREFIX .. 'edges:' .. child, {}
    for place = 1, #results, 2 do
        local _, _, terms = edge_state(redis.call('HGET', edges, results[place]))
        local _, _, argument = split_edge(results[place])
        local position = cjson.decode(terms)[3]
        if position == cjson.null then position = nil end
        inputs[#inputs + 1] = {argument, position, results[place + 1], field = results[place]}
    end
    table.sort(inputs, function(a, b) return comes_before(a.field, b.field) end)
    local payload = redis.call('HGET', job_key(child), 'payload')
    redis.call('HSET', job_key(child), 'payload', with_inputs(payload, inputs))
    for _, value in ipairs(redis.call('HVALS', edges)) do
        if edge_state(value) ~= 'satisfied' then return end
    end
    redis.call('DEL', key)
end

-- Ends a job because of a parent; whether it had not ended before, for a reason of its own.
local function end_dependent(job, outcome, failure)
    local status = 'cancelled'
    if outcome == 'dead' and MAY_ORPHAN[job.status] then
        status = 'dead_letter'
    elseif not MAY_CANCEL[job.status] then
        return false
    end
    leave(job)
    redis.call('HSET', job_key(job.id), 'status', status, 'error', failure.error, 'error_details',
        failure.details, 'completed_at', NOW, 'updated_at', NOW)
    enter(job, status)
    if status == 'dead_letter' then
        redis.call('HSET', job_key(job.id), 'failed_at', NOW)
        keep_dead_letter(job, failure)
    end
    redis.call('HDEL', PREFIX .. 'pauses:jobs', job.id)
    if job.key then release_key(job.key, job.id, job.key_scope) end
    measure(label_of(job.lane), status == 'dead_letter' and 'dead' or 'cancelled')
    return true
end

-- Closes the edges of ended parents; the children that ended because of it.
local function close_all(parents, ahead)
    local closed, jobs, counts, children = {}, {}, {}, {}
    for _, parent in ipairs(awaited(parents)) do close_edges_to(parent, closed) end
    for _, edge in ipairs(closed) do
        local child = edge.child
        if not counts[child] then
            children[#children + 1] = child
            counts[child] = 0
            jobs[child] = look(child)
        end
        counts[child] = counts[child] + 1
    end
    local doomed, informed = {}, {}
    for _, child in ipairs(children) do
        if jobs[child] then change_waiting(jobs[child], -counts[child]) end
    end
    for _, edge in ipairs(closed) do
        local job, next_ahead = jobs[edge.child], ahead[edge.parent]
        if job and edge.kind == 'order' and next_ahead then
            stand_behind(job.id, next_ahead)
            change_waiting(job, 1)
        end
        if edge.kind ~= 'order' then informed[edge.child] = true end
        if edge.failure then doomed[edge.child] = edge end
    end
    local ended = {}
    for _, child in ipairs(children) do
        local job, edge = jobs[child], doomed[child]
        if job and informed[child] and job.waiting_on == 0 then pass_results(child) end
        if job and edge and end_dependent(job, edge.outcome, edge.failure) then
            ended[#ended + 1] = child
        end
    end
    return ended
end

-- Jobs have ended, their hashes say so and their keys are free: gives up their places in line and
-- releases who waits for them.
local function end_jobs(ids)
    if #ids == 0 then return end
    if redis.call('EXISTS', PREFIX .. 'edges:open', PREFIX .. 'lines') == 0 then return end
    local ahead = leave_lines(ids)
    local frontier = ids
    while #frontier > 0 do
        frontier = close_all(frontier, ahead)
        ahead = #frontier > 0 and leave_lines(frontier) or {}
    end
end
