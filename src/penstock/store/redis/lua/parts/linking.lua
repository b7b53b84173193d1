-- Making edges: all of a call are checked first, then written.
--
-- needs: common edges lines release
--
-- An edge is {parent, kind, argument, terms}, see edges.lua; `links` has `added`, a list of
-- {child, its edges}, `waits`, how many each child has, and `ended`, the parents that have ended.

local function distinct(edges)
    local found, place_of = {}, {}
    for _, edge in ipairs(edges) do
        local field = edge_field(edge[1], edge[2], edge[3])
        place_of[field] = place_of[field] or #found + 1
        found[place_of[field]] = edge
    end
    return found
end

-- Asks for conditions on the results of parents that have completed already.
local function undecided_among(added, results)
    local asked, seen = {'decide'}, {}
    for _, entry in ipairs(added) do
        for _, edge in ipairs(entry[2]) do
            local parent, condition = edge[1], condition_of(edge[4])
            local known = edge_field(parent, '', condition)
            if edge[2] == 'conditional' and results[parent] and not seen[known]
                and not decision_on(parent, condition) then
                seen[known] = true
                for _, value in ipairs({parent, condition, results[parent]}) do
                    asked[#asked + 1] = value
                end
            end
        end
    end
    return #asked > 1 and asked or nil
end

-- Refuses edges to unknown parents and cycles among new edges, or asks for decisions; nil when
-- the edges can be made. `made` holds the ids that this call makes.
local function refuse_links(links, made)
    local parents, starts, parents_of, results = {}, {}, {}, {}
    for _, entry in ipairs(links.added) do
        starts[#starts + 1] = entry[1]
        parents_of[entry[1]] = {}
        for _, edge in ipairs(entry[2]) do
            table.insert(parents_of[entry[1]], edge[1])
            parents[edge[1]] = not made[edge[1]]
        end
    end
    local unknown = nil
    for parent, stored in pairs(parents) do
        local found = stored and redis.call('HMGET', job_key(parent), 'status', 'result')
        if found and not found[1] and (not unknown or comes_before(parent, unknown)) then
            unknown = parent
        elseif found and ENDED[found[1]] then
            links.ended[#links.ended + 1] = parent
            if found[1] == 'completed' then results[parent] = found[2] or 'null' end
        end
    end
    if unknown then return {'refused', 'ParentNotFound', unknown} end
    local cycle = find_cycle(starts, function(id) return parents_of[id] or {} end)
    if cycle then
        table.insert(cycle, 1, 'DependencyCycle')
        table.insert(cycle, 1, 'refused')
        return cycle
    end
    return undecided_among(links.added, results) or undecided(results)
end

-- The edges of jobs about to be inserted (inserts.lua), and why they cannot be made, if so. A
-- parent in the same call may have turned out to be a job that is there already.
local function plan_links(plan)
    local links, made, meant = {added = {}, waits = {}, ended = {}}, {}, {}
    for _, place in ipairs(plan.created) do
        local after = plan.shape_of[place].after
        if after and after ~= cjson.null and #after > 0 then
            links.added[#links.added + 1] = {plan.ids[place], after}
        end
    end
    if #links.added == 0 then return links, nil end
    for place, id in ipairs(plan.ids) do meant[id] = plan.answers[place] end
    for _, place in ipairs(plan.created) do made[plan.ids[place]] = true end
    for _, entry in ipairs(links.added) do
        local edges = {}
        for place, edge in ipairs(entry[2]) do
            edges[place] = {meant[edge[1]] or edge[1], edge[2], edge[3], edge[4]}
        end
        entry[2] = distinct(edges)
        links.waits[entry[1]] = #entry[2]
    end
    return links, refuse_links(links, made)
end

-- Writes the edges, many in one command; parents that have ended count at once.
local function write_links(links)
    local parents, members_of_parent = {}, {}
    for _, entry in ipairs(links.added) do
        local fields = {}
        for _, edge in ipairs(entry[2]) do
            local parent, kind, argument, terms = unpack(edge)
            fields[#fields + 1] = edge_field(parent, kind, argument)
            fields[#fields + 1] = '- - ' .. terms
            if not members_of_parent[parent] then
                members_of_parent[parent] = {}
                parents[#parents + 1] = parent
            end
            table.insert(members_of_parent[parent], 0)
            table.insert(members_of_parent[parent], edge_field(entry[1], kind, argument))
        end
        many('HSET', PREFIX .. 'edges:' .. entry[1], fields, 2)
    end
    for _, parent in ipairs(parents) do
        many('ZADD', PREFIX .. 'children:' .. parent, members_of_parent[parent], 2)
    end
    many('SADD', PREFIX .. 'edges:open', parents)
    local frontier = links.ended
    while #frontier > 0 do frontier = close_all(frontier, {}) end
end
