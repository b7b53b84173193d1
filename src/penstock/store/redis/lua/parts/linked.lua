-- The edges of a job, as readers see them.
-- needs: common edges

local function type_and_status(id)
    local found = redis.call('HMGET', job_key(id), 'lane', 'status')
    if not found[1] then return false, false end
    return parts_of(found[1])[3], found[2]
end

-- {child, parent, kind, argument, outcome, closed_at, terms, the parent's type and status, the
-- child's}
local function linked(child, parent, kind, argument, value)
    local outcome, closed_at, terms = edge_state(value)
    local parent_type, parent_status = type_and_status(parent)
    local child_type, child_status = type_and_status(child)
    return {child, parent, kind, argument, outcome or false, outcome and closed_at or false,
        terms, parent_type, parent_status, child_type, child_status}
end

-- What a job waits for, or waited: the open ones first, and only those if so asked.
local function parents_of_job(id, limit, only_open)
    local fields, values = {}, {}
    local all = redis.call('HGETALL', PREFIX .. 'edges:' .. id)
    for place = 1, #all, 2 do
        local closed = edge_state(all[place + 1]) ~= nil
        if not (closed and only_open) then
            fields[#fields + 1] = {closed and 1 or 0, all[place]}
            values[all[place]] = all[place + 1]
        end
    end
    table.sort(fields, function(a, b)
        if a[1] ~= b[1] then return a[1] < b[1] end
        return a[2] < b[2]
    end)
    local found = {}
    for place = 1, math.min(#fields, limit) do
        local parent, kind, argument = split_edge(fields[place][2])
        found[place] = linked(id, parent, kind, argument, values[fields[place][2]])
    end
    return found
end

-- What waits for a job, or waited.
local function children_of_job(id, limit)
    local found = {}
    local fields = redis.call('ZRANGE', PREFIX .. 'children:' .. id, 0, limit - 1)
    for _, field in ipairs(fields) do
        local child, kind, argument = split_edge(field)
        local named = edge_field(id, kind, argument)
        local value = redis.call('HGET', PREFIX .. 'edges:' .. child, named)
        if value then found[#found + 1] = linked(child, id, kind, argument, value) end
    end
    return found
end
