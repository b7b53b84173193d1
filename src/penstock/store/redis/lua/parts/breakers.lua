-- Circuit breakers: what executions say about the things they depend on.
--
-- needs: common

-- A breaker with all that has happened to it; `guards` is the set of its types.
local function read_breaker(name, definition)
    local types, failures, cool_down_ms = unpack(cjson.decode(definition))
    local breaker = {name = name, failures = failures, cool_down_ms = cool_down_ms}
    breaker.types, breaker.guards = types, {}
    for _, guarded in ipairs(types) do breaker.guards[guarded] = true end
    breaker.stored = redis.call('HGET', PREFIX .. 'breakers:state', name) or '0 - -'
    local failed, opened_at, probe = string.match(breaker.stored, '^(%S+) (%S+) (.*)$')
    breaker.failed, breaker.opened_at = tonumber(failed), tonumber(opened_at)
    breaker.probe = probe ~= '-' and probe or nil
    return breaker
end

local function read_breakers()
    local found, rows = {}, redis.call('HGETALL', PREFIX .. 'breakers')
    for place = 1, #rows, 2 do found[#found + 1] = read_breaker(rows[place], rows[place + 1]) end
    table.sort(found, function(a, b) return a.name < b.name end)
    return found
end

local function write_breaker(breaker)
    local opened_at = breaker.opened_at and int(breaker.opened_at) or '-'
    local state = int(breaker.failed) .. ' ' .. opened_at .. ' ' .. (breaker.probe or '-')
    if state == breaker.stored then return end
    redis.call('HSET', PREFIX .. 'breakers:state', breaker.name, state)
end

-- A time far ahead was written before the clock was put back.
local function breaker_position(breaker)
    if not breaker.opened_at then return 'closed' end
    if math.abs(now - breaker.opened_at) < breaker.cool_down_ms then return 'open' end
    return 'half_open'
end

-- Whether its probe runs; one that ended without a settlement counts no more.
local function is_probing(breaker)
    if not breaker.probe then return false end
    return redis.call('HGET', job_key(breaker.probe), 'status') == 'in_progress'
end

-- The first of the leases that the breaker guards is its probe.
local function remember_probe(breaker, leases)
    for _, lease in ipairs(leases) do
        if breaker.guards[parts_of(lease.lane)[3]] then
            breaker.probe = lease.id
            write_breaker(breaker)
            return
        end
    end
end

-- The breaker after one execution; while it is open, only its probe has a say.
local function hear(breaker, id, verdict)
    local probe = breaker.probe == id
    if breaker.opened_at and not probe then return end
    if verdict == 'failed' then
        breaker.failed = breaker.failed + 1
        local opens = probe or breaker.failed >= breaker.failures
        breaker.opened_at = opens and now or nil
    elseif verdict == 'answered' or (verdict == 'refused' and probe) then
        breaker.failed, breaker.opened_at = 0, nil
    elseif not probe then
        return
    end
    breaker.probe = nil
end

-- What an execution says of the things it depended on: `answered` is a success, `failed` that one
-- of them is down, `refused` any other error; nil says nothing.
local function verdict_of(event)
    if event.kind == 'completed' then return 'answered' end
    if event.kind ~= 'failed' and event.kind ~= 'buried' then return nil end
    return event.counted and 'failed' or 'refused'
end

-- Opens, closes or leaves the breakers that guard what executions depended on; of each its id,
-- type, kind of ending, and whether its error counts.
local function heed_breakers(events)
    for _, breaker in ipairs(read_breakers()) do
        for _, event in ipairs(events) do
            if breaker.guards[event.type] then hear(breaker, event.id, verdict_of(event)) end
        end
        write_breaker(breaker)
    end
end
