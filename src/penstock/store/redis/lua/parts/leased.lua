-- What every owner has leased, by all that a limit may be about.
--
-- needs: common

local SCOPES = {'queue', 'tenant', 'type', 'key'}
local IN_ORDER = {1, 3, 2, 4}

local function read_hash(name)
    local found, values = {}, redis.call('HGETALL', PREFIX .. name)
    for place = 1, #values, 2 do found[values[place]] = values[place + 1] end
    return found
end

-- All that a limit on a lane may be about, {scope, name} each; a job may be without a tenant and
-- without a limit key.
local function names_of(lane)
    local parts, named = parts_of(lane), {}
    for _, place in ipairs(IN_ORDER) do
        if parts[place] ~= '' then named[#named + 1] = {SCOPES[place], parts[place]} end
    end
    return named
end

-- One row per owner and lane.
local function leased_rows()
    local rows, started = {}, read_hash('started')
    for field, leases in pairs(read_hash('leased')) do
        local lane, owner = string.match(field, '^(.*)\n([^\n]*)$')
        rows[#rows + 1] = {
            field = field, lane = lane, owner = owner, leases = tonumber(leases),
            started = tonumber(started[field]) or 0,
        }
    end
    table.sort(rows, function(a, b) return a.field < b.field end)
    return rows
end

-- Leases and starts by scope \n name and then by owner.
local function leased_by_name(rows)
    local found = {}
    for _, row in ipairs(rows) do
        for _, name in ipairs(names_of(row.lane)) do
            local about = name[1] .. '\n' .. name[2]
            found[about] = found[about] or {}
            local has = found[about][row.owner] or {leases = 0, started = 0}
            has.leases, has.started = has.leases + row.leases, has.started + row.started
            found[about][row.owner] = has
        end
    end
    return found
end
