-- Everything that may hold jobs back, and how much of it is taken.
--
-- needs: common leased breakers
-- reads: breakers, breakers:state, job:…, leased, leases:…, limits, limits:depth, pauses, rates,
--   slots, started
-- ARGV[4]… names of which to list the jobs that run, as scope \n name, besides those with a limit
--          on concurrency
-- answers {now, pauses, limits, depth limits, slots, rates, breakers with their states, ids of
--          probes that run, leases, holders}; the first five as the hashes have them, a breaker as
--          {name, definition, state}, leases as {lane, owner, leases, started}, and holders as
--          {scope \n name, ids}

local SHOWN_HOLDERS = 10

local function flat(name)
    return redis.call('HGETALL', PREFIX .. name)
end

local breakers, probes = {}, {}
for name, definition in pairs(read_hash('breakers')) do
    local breaker = read_breaker(name, definition)
    if is_probing(breaker) then probes[#probes + 1] = breaker.probe end
    breakers[#breakers + 1] = {name, definition, breaker.stored}
end

local wanted = {}
for place = 4, #ARGV do wanted[ARGV[place]] = {} end
for field in pairs(read_hash('limits')) do
    local scope, kind, name = string.match(field, '^([^\n]*)\n([^\n]*)\n(.*)$')
    if kind == 'concurrency' and name ~= '*' then wanted[scope .. '\n' .. name] = {} end
end

local function note_holders(owner)
    for _, id in ipairs(redis.call('ZRANGE', PREFIX .. 'leases:' .. owner, 0, -1)) do
        local found = redis.call('HMGET', job_key(id), 'lane', 'started_at')
        local started = found[2] and found[2] ~= ''
        for _, name in ipairs(found[1] and names_of(found[1]) or {}) do
            local holders = wanted[name[1] .. '\n' .. name[2]]
            if holders then holders[#holders + 1] = (started and '0' or '1') .. id end
        end
    end
end

local owners, leases = {}, {}
for place, row in ipairs(leased_rows()) do
    leases[place] = {row.lane, row.owner, row.leases, row.started}
    owners[row.owner] = true
end
if next(wanted) then
    for owner in pairs(owners) do note_holders(owner) end
end

local holders = {}
for name, found in pairs(wanted) do
    table.sort(found)
    local ids = {}
    for place = 1, math.min(#found, SHOWN_HOLDERS) do ids[place] = string.sub(found[place], 2) end
    holders[#holders + 1] = {name, ids}
end

return {
    NOW, flat('pauses'), flat('limits'), flat('limits:depth'), flat('slots'), flat('rates'),
    breakers, probes, leases, holders,
}
