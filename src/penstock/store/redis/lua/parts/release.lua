-- The end of a job: what it means for those that wait for it, down to any depth.
--
-- needs: common bury edges lines inputs
--
-- ARGV[3] is JSON {"parent": {"condition": [outcome, error, error_details]}}. Where a condition on
-- the result of a completed job is not among it, a script answers, before it writes anything,
-- {'decide', parent, condition, result, …} and is called again with the decisions.

local decisions = ARGV[3] and ARGV[3] ~= '' and cjson.decode(ARGV[3]) or {}
local ORPHANED = {cancelled = {failure after_cancelled}, dead_letter = {failure after_dead_letter}}
local AFTER_FOREIGN = {failure after_foreign}
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

local function tenant_of(id)
    local lane = redis.call('HGET', job_key(id), 'lane')
    return lane and parts_of(lane)[2] or ''
end

-- What a child is told by an edge that ends it; nothing of a parent that belongs to somebody else.
local function told_by(edge)
    if tenant_of(edge.child) == tenant_of(edge.parent) then return edge.failure end
    if edge.outcome ~= 'not_met' then return AFTER_FOREIGN end
    local error = string.gsub(edge.failure.error, 'job ' .. edge.parent, 'a job of another tenant')
    return {error = error, details = edge.failure.details}
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
                local condition = condition_of(terms_of(value))
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

-- Closes every open edge of an ended job; adds them to `closed`, with how they closed.
local function close_edges_to(parent, closed)
    local children = PREFIX .. 'children:' .. parent
    local found = redis.call('HMGET', job_key(parent), 'status', 'result')
    local status, result = found[1], found[2] and found[2] ~= '' and found[2] or 'null'
    local members = {}
    for _, member in ipairs(redis.call('ZRANGEBYSCORE', children, 0, 0)) do
        local child, kind, argument = split_edge(member)
        local key, field = PREFIX .. 'edges:' .. child, edge_field(parent, kind, argument)
        local edge = {child = child, parent = parent, kind = kind}
        edge.terms = terms_of(redis.call('HGET', key, field))
        edge.outcome, edge.failure = decide(edge, status)
        redis.call('HSET', key, field, edge.outcome .. ' ' .. NOW .. ' ' .. edge.terms)
        if kind == 'data' then redis.call('HSET', PREFIX .. 'inputs:' .. child, field, result) end
        members[#members + 1] = 1
        members[#members + 1] = member
        closed[#closed + 1] = edge
    end
    many('ZADD', children, members, 2)
end

-- Puts the parents' results into the payload of a child that waits for nobody any more. While a
-- parent may come back, the results of the others are kept: they go into one list with its.
local function pass_results(child)
    local key = PREFIX .. 'inputs:' .. child
    local results = redis.call('HGETALL', key)
    if #results == 0 then return end
    local edges, inputs = PREFIX .. 'edges:' .. child, {}
    for place = 1, #results, 2 do
        local position = cjson.decode(terms_of(redis.call('HGET', edges, results[place])))[3]
        local _, _, argument = split_edge(results[place])
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

-- How a job ends because of a parent; nil when it has ended before, for a reason of its own.
local function fate_of(job, outcome)
    if outcome == 'dead' and MAY_ORPHAN[job.status] then return 'dead_letter' end
    return MAY_CANCEL[job.status] and 'cancelled' or nil
end

local function end_dependent(job, status, failure, waiting_on)
    leave(job)
    if job.status == 'paused' then redis.call('HDEL', PREFIX .. 'pauses:jobs', job.id) end
    job.waiting_on = waiting_on
    redis.call('HSET', job_key(job.id), 'status', status, 'error', failure.error, 'error_details',
        failure.details, 'completed_at', NOW, 'updated_at', NOW, 'waiting_on', int(waiting_on))
    enter(job, status)
    if status == 'dead_letter' then
        redis.call('HSET', job_key(job.id), 'failed_at', NOW)
        keep_dead_letter(job, failure)
    end
    if job.key then release_key(job.key, job.id, job.key_scope) end
    local name = status == 'dead_letter' and 'dead' or 'cancelled'
    measure_end(job.lane, name, job.attempts)
end

-- What the closed edges mean for each child: {id, by how many edges it waits less, whether it
-- waited for more than its place in line, the edge that ends it}.
local function sum_up(closed, ahead)
    local children, summary = {}, {}
    for _, edge in ipairs(closed) do
        local sum = summary[edge.child]
        if not sum then
            sum = {id = edge.child, fewer = 0}
            summary[edge.child] = sum
            children[#children + 1] = sum
        end
        sum.fewer = sum.fewer + 1
        if edge.kind ~= 'order' then
            sum.informed = true
        elseif ahead[edge.parent] then
            stand_behind(edge.child, ahead[edge.parent])
            sum.fewer = sum.fewer - 1
        end
        if edge.failure then sum.doom = edge end
    end
    return children
end

-- Closes the edges of ended parents; the children that ended because of it.
local function close_all(parents, ahead)
    local closed, ended = {}, {}
    local waited_for = awaited(parents)
    for _, parent in ipairs(waited_for) do close_edges_to(parent, closed) end
    many('SREM', PREFIX .. 'edges:open', waited_for)
    for _, sum in ipairs(sum_up(closed, ahead)) do
        local job = look(sum.id)
        if job then
            local waiting_on = job.waiting_on - sum.fewer
            if sum.informed and waiting_on == 0 then pass_results(sum.id) end
            local fate = sum.doom and fate_of(job, sum.doom.outcome)
            if fate then
                end_dependent(job, fate, told_by(sum.doom), waiting_on)
                ended[#ended + 1] = sum.id
            else
                change_waiting(job, -sum.fewer)
            end
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
