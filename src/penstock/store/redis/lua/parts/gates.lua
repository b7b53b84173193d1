-- What stands between queued jobs and a worker: pauses, limits, breakers; read once per claim.
--
-- needs: common leased gate_kinds
--
-- Only called while any of pauses, limits and breakers exists.
--   open_gates(claim)      gates for one claim (owner, limit, start, ahead, … as in claim.lua)
--   gates.open(lane)       whether any job of a lane could be leased
--   gates.admit(lane)      one more is leased: true to start, false to wait, nil not at all
--   gates.write(leases)    after the leases are written, {id = , lane = } each; a list
--                          {scope, name, slots} each, for Claimed.slots
--   gates.retry_in()       milliseconds after which to ask again, or nil

local KINDS = {'concurrency', 'rate'}

local function slots_field(scope, owner, name)
    return scope .. '\n' .. owner .. '\n' .. name
end

local function own_slot_gate(g, scope, name, capacity)
    local leased, others = g.leased[scope .. '\n' .. name] or {}, 0
    for owner, has in pairs(leased) do
        if owner ~= g.owner then
            local slots = tonumber(g.slots[slots_field(scope, owner, name)]) or 0
            others = others + taken_by(has, slots)
        end
    end
    local stored = tonumber(g.slots[slots_field(scope, g.owner, name)])
    local own = leased[g.owner] or {leases = 0, started = 0}
    return slot_gate(scope, name, capacity, stored, own, others)
end

-- The gate of one limit; one for `*` makes a gate for each name.
local function limit_gate(g, scope, kind, name)
    local prefix = scope .. '\n' .. kind .. '\n'
    local limit = g.limits[prefix .. name] or g.limits[prefix .. '*']
    if not limit then return nil end
    local gate = g.known[prefix .. name]
    if not gate then
        if kind == 'rate' then
            gate = rate_gate(scope, name, limit[1], limit[2])
        else
            gate = own_slot_gate(g, scope, name, limit[1])
        end
        g.known[prefix .. name] = gate
        g.made[#g.made + 1] = gate
    end
    return gate
end

local function breaker_gate_of(g, breaker)
    if not breaker.gate then
        breaker.gate = breaker_gate(breaker)
        g.made[#g.made + 1] = breaker.gate
    end
    return breaker.gate
end

local function gates_of(g, lane)
    local found = g.of_lane[lane]
    if found then return found end
    found = {}
    for _, name in ipairs(names_of(lane)) do
        for _, kind in ipairs(KINDS) do
            found[#found + 1] = limit_gate(g, name[1], kind, name[2])
        end
    end
    for _, breaker in ipairs(g.breakers) do
        if breaker.guards[parts_of(lane)[3]] then found[#found + 1] = breaker_gate_of(g, breaker) end
    end
    g.of_lane[lane] = found
    return found
end

-- The strictest answer of all gates of the lane.
local function admits(g, lane, starts)
    local answer, only_slots = starts, true
    for _, gate in ipairs(gates_of(g, lane)) do
        local one = gate.admits(starts, g.ahead)
        if one == nil then
            if gate.retry_in then g.retry_in = math.min(gate.retry_in, g.retry_in or gate.retry_in) end
            return nil
        end
        answer = answer and one
        only_slots = only_slots and gate.kind == 'concurrency'
    end
    -- A rate or a breaker counts what starts now; what waits for a slot would start later.
    if starts and not answer and not only_slots then return nil end
    return answer
end

-- Forgets own slots without a lease; with a limit for each key they would pile up.
local function drop_idle_slots(g)
    for field in pairs(g.slots) do
        local scope, owner, name = string.match(field, '^([^\n]*)\n([^\n]*)\n(.*)$')
        if owner == g.owner and not (g.leased[scope .. '\n' .. name] or {})[owner] then
            redis.call('HDEL', PREFIX .. 'slots', field)
            g.slots[field] = nil
        end
    end
end

-- Slots of all gates of a lane for leases that have not started; how many got none.
local function give_slots(g, gates, leases)
    while leases > 0 do
        local grows, full = false, g.starting >= g.start
        for _, gate in ipairs(gates) do
            grows = grows or gate.spare == 0
            full = full or (gate.spare == 0 and gate.room == 0)
        end
        if grows and full then break end
        for _, gate in ipairs(gates) do use_slot(gate) end
        g.starting = g.starting + (grows and 1 or 0)
        leases = leases - 1
    end
    return leases
end

-- Two owners that each have what the other one needs would wait for ever.
local function give_up_useless(waiting)
    local useful, seen = {}, {}
    for _, gates in ipairs(waiting) do
        local shut = false
        for _, gate in ipairs(gates) do shut = shut or is_shut(gate) end
        for _, gate in ipairs(gates) do
            seen[#seen + 1] = gate
            useful[gate] = useful[gate] or not shut
        end
    end
    for _, gate in ipairs(seen) do
        if not useful[gate] then give_up_spare(gate) end
    end
end

-- Gives slots to leases that wait for one; a slot is no use to one that lacks another.
local function meet_own_leases(g)
    local rows, waiting = leased_rows(), {}
    g.leased = leased_by_name(rows)
    g.slots = read_hash('slots')
    drop_idle_slots(g)
    for _, row in ipairs(rows) do
        if row.owner == g.owner then
            local gates = {}
            for _, gate in ipairs(gates_of(g, row.lane)) do
                if gate.kind == 'concurrency' then gates[#gates + 1] = gate end
            end
            if give_slots(g, gates, row.leases - row.started) > 0 then
                waiting[#waiting + 1] = gates
            end
        end
    end
    give_up_useless(waiting)
end

local function write_slots(g, gate, granted)
    if gate.leases > 0 then granted[#granted + 1] = {gate.scope, gate.name, gate.slots} end
    local known = gate.stored
    if gate.leases == 0 then known = known or 0 end
    if gate.slots ~= known then
        local field = slots_field(gate.scope, g.owner, gate.name)
        redis.call('HSET', PREFIX .. 'slots', field, int(gate.slots))
    end
end

local function read_limits(g)
    local slots_matter = false
    for field, value in pairs(read_hash('limits')) do
        g.limits[field] = cjson.decode(value)
        slots_matter = slots_matter or string.match(field, '\n(%w+)\n') == 'concurrency'
    end
    if slots_matter then meet_own_leases(g) end
end

local function open_gates(claim)
    local g = {
        owner = claim.owner, start = claim.start, ahead = claim.ahead or 0, starting = 0,
        paused = read_hash('pauses'), breakers = read_breakers(), limits = {}, slots = {},
        leased = {}, known = {}, made = {}, of_lane = {},
    }
    read_limits(g)
    local gates = {}

    function gates.open(lane)
        local parts = parts_of(lane)
        for place = 1, 3 do
            if g.paused[SCOPES[place] .. '\n' .. parts[place]] then return false end
        end
        return admits(g, lane, true) ~= nil
    end

    function gates.admit(lane)
        local starts = admits(g, lane, g.starting < g.start)
        if starts == nil then return nil end
        for _, gate in ipairs(gates_of(g, lane)) do gate.take(starts) end
        if starts then g.starting = g.starting + 1 end
        return starts
    end

    function gates.write(leases)
        local granted = {}
        for _, gate in ipairs(g.made) do
            if gate.kind == 'concurrency' then
                write_slots(g, gate, granted)
            elseif gate.kind == 'rate' and gate.taken > 0 then
                gate.write()
            elseif gate.kind == 'breaker' and gate.taken > 0 and not gate.closed then
                remember_probe(gate.breaker, leases)
            end
        end
        return granted
    end

    function gates.retry_in() return g.retry_in end

    return gates
end
