-- The three kinds of gate, each as one owner meets it in one claim.
--
-- needs: common rates breakers
--
--   gate.admits(starts, ahead)  whether one more may be leased, to start (true) or to wait (false);
--                               nil when it may not be leased
--   gate.take(starts)           one more was leased
--   gate.retry_in               milliseconds until it admits more, if time alone helps

-- How many slots an owner takes up; what ran before there was a limit counts too.
local function taken_by(has, slots)
    return math.max(has.started, math.min(has.leases, slots))
end

-- A limit on concurrency. The owner may run `slots` jobs at once. It may hold more leases than
-- that, in proportion, to go on without asking; `others` counts only slots that have leases.
local function slot_gate(scope, name, capacity, stored, own, others)
    local gate = {kind = 'concurrency', scope = scope, name = name, stored = stored}
    gate.slots = math.min(taken_by(own, stored or 0), math.max(0, capacity - others))
    gate.spare = math.max(0, gate.slots - own.started)
    gate.leases = own.leases
    gate.room = math.max(0, capacity - others - gate.slots)
    function gate.admits(starts, ahead)
        if starts and gate.room > 0 then return true end
        if gate.leases + 1 <= gate.slots * (1 + ahead) then return false end
        return nil
    end
    function gate.take(starts)
        gate.leases = gate.leases + 1
        if starts then gate.slots, gate.room = gate.slots + 1, gate.room - 1 end
    end
    return gate
end

-- A lease that waits gets a slot: one that is spare, or a new one.
local function use_slot(gate)
    if gate.spare > 0 then
        gate.spare = gate.spare - 1
    else
        gate.slots, gate.room = gate.slots + 1, gate.room - 1
    end
end

local function give_up_spare(gate)
    gate.slots, gate.room = gate.slots - gate.spare, gate.room + gate.spare
    gate.spare = 0
end

-- Whether the owner has no slot and knows it, so that none of these leases can start.
local function is_shut(gate)
    return gate.slots == 0 and gate.stored == 0
end

-- A limit on starts in a while; what it admits starts at once, or starts would bunch up.
local function rate_gate(scope, name, capacity, interval_ms)
    local recent, started = recent_starts(read_starts(scope, name), interval_ms)
    local gate = {kind = 'rate', taken = 0, left = math.max(0, capacity - started)}
    gate.retry_in = rate_frees_in(recent, started, capacity, interval_ms)
    function gate.admits(starts)
        if starts and gate.taken < gate.left then return true end
        return nil
    end
    function gate.take() gate.taken = gate.taken + 1 end
    function gate.write() write_starts(scope, name, recent, interval_ms, gate.taken) end
    return gate
end

-- An open breaker lets nothing through, a half-open one a single job. A closed one lets all
-- through that start at once: jobs taken in advance would still run, and fail, after it opened.
local function breaker_gate(breaker)
    local position = breaker_position(breaker)
    local gate = {kind = 'breaker', breaker = breaker, taken = 0, closed = position == 'closed'}
    gate.left = position == 'half_open' and not is_probing(breaker) and 1 or 0
    if position == 'open' then gate.retry_in = breaker.opened_at + breaker.cool_down_ms - now end
    function gate.admits(starts)
        if starts and (gate.closed or gate.taken < gate.left) then return true end
        return nil
    end
    function gate.take() gate.taken = gate.taken + 1 end
    return gate
end
