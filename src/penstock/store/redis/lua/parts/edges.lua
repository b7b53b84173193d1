-- Edges between jobs, as they are kept in edges:CHILD, children:PARENT and edges:open.
--
-- needs: common

local IN_LINE = '["run","leave",null,null]'

local function edge_field(parent, kind, argument)
    return parent .. '\n' .. kind .. '\n' .. argument
end

-- {parent or child, kind, argument}
local function split_edge(field)
    return string.match(field, '^([^\n]*)\n([^\n]*)\n(.*)$')
end

local function edge_state(value)
    local outcome, closed_at, terms = string.match(value, '^(%S+) (%S+) (.*)$')
    return outcome ~= '-' and outcome or nil, closed_at, terms
end

-- The terms of an edge; one whose field is gone only counts as an end of waiting.
local function terms_of(value)
    if not value then return IN_LINE end
    local _, _, terms = edge_state(value)
    return terms
end

-- Whether a requeue of the parent opens an edge again.
local function restores(terms)
    return cjson.decode(terms)[2] == 'restore'
end

local function open_edge(child, parent, kind, argument, terms)
    redis.call('HSET', PREFIX .. 'edges:' .. child, edge_field(parent, kind, argument), '- - ' .. terms)
    redis.call('ZADD', PREFIX .. 'children:' .. parent, 0, edge_field(child, kind, argument))
    redis.call('SADD', PREFIX .. 'edges:open', parent)
end

local function forget_if_unawaited(parent)
    if redis.call('ZCOUNT', PREFIX .. 'children:' .. parent, 0, 0) == 0 then
        redis.call('SREM', PREFIX .. 'edges:open', parent)
    end
end

local function drop_edge(child, parent, kind, argument)
    redis.call('HDEL', PREFIX .. 'edges:' .. child, edge_field(parent, kind, argument))
    redis.call('ZREM', PREFIX .. 'children:' .. parent, edge_field(child, kind, argument))
    forget_if_unawaited(parent)
end

-- All edges of jobs that are deleted; those to them stay, and know their parent by its id alone.
local function drop_edges_of(child)
    for _, field in ipairs(redis.call('HKEYS', PREFIX .. 'edges:' .. child)) do
        local parent, kind, argument = split_edge(field)
        redis.call('ZREM', PREFIX .. 'children:' .. parent, edge_field(child, kind, argument))
        forget_if_unawaited(parent)
    end
    redis.call('DEL', PREFIX .. 'edges:' .. child, PREFIX .. 'inputs:' .. child)
end

-- Those of some jobs that others wait for.
local function awaited(ids)
    local found = {}
    for first = 1, #ids, 1000 do
        local last = math.min(first + 999, #ids)
        local answers = redis.call('SMISMEMBER', PREFIX .. 'edges:open', unpack(ids, first, last))
        for place, answer in ipairs(answers) do
            if answer == 1 then found[#found + 1] = ids[first + place - 1] end
        end
    end
    return found
end

-- Open edges more or fewer; `job` as it was looked at.
local function change_waiting(job, by)
    if by == 0 then return end
    local waited = job.waiting_on
    if STAGED[job.status] then
        count_place(job.lane, place_of(job), -1)
        job.waiting_on = waited + by
        count_place(job.lane, place_of(job), 1)
        if job.waiting_on == 0 then
            redis.call('ZADD', PREFIX .. 'due', int(job.scheduled_at), job.id)
        elseif waited == 0 then
            redis.call('ZREM', PREFIX .. 'due', job.id)
        end
    end
    job.waiting_on = waited + by
    redis.call('HSET', job_key(job.id), 'waiting_on', int(job.waiting_on), 'updated_at', NOW)
end

-- A path that comes back to its beginning, or nil; `parents_of(id)` lists the parents of a job.
local function find_cycle(starts, parents_of)
    local done, place, path = {}, {}, {}
    for _, start in ipairs(starts) do
        local walk = {{0, {start}}}
        while #walk > 0 do
            local step = walk[#walk]
            step[1] = step[1] + 1
            local id = step[2][step[1]]
            if not id then
                walk[#walk] = nil
                local left = table.remove(path)
                if left then done[left], place[left] = true, nil end
            elseif place[id] then
                local cycle = {}
                for at = place[id], #path do cycle[#cycle + 1] = path[at] end
                cycle[#cycle + 1] = id
                return cycle
            elseif not done[id] then
                path[#path + 1] = id
                place[id] = #path
                walk[#walk + 1] = {0, parents_of(id)}
            end
        end
    end
    return nil
end
