-- Drop what no longer matters: unique keys whose window is over, slots nobody uses, old starts,
-- expired records.
--
-- needs: common leased records
-- reads: leased, limits, started
-- writes: keys, keys:expiring, rates, records, records:expiring, records:names, slots
-- ARGV[4] how many keys and how many records to drop at most
-- answers how many keys were dropped

-- Slots of owners without a lease; with a limit for each key they would pile up.
local function drop_idle_slots()
    local owners, idle = {}, {}
    for _, row in ipairs(leased_rows()) do owners[row.owner] = true end
    for field in pairs(read_hash('slots')) do
        if not owners[string.match(field, '^[^\n]*\n([^\n]*)\n')] then idle[#idle + 1] = field end
    end
    many('HDEL', PREFIX .. 'slots', idle)
end

-- Starts that no rate looks back to any more; with a rate for each tenant they would pile up.
local function drop_old_starts()
    local longest, old = {}, {}
    for field, limit in pairs(read_hash('limits')) do
        local scope, kind = string.match(field, '^([^\n]*)\n([^\n]*)\n')
        local interval_ms = kind == 'rate' and cjson.decode(limit)[2] or 0
        longest[scope] = math.max(longest[scope] or 0, interval_ms)
    end
    for field, starts in pairs(read_hash('rates')) do
        local scope = string.match(field, '^[^\n]*')
        local last = string.match(starts, '%[(%d+),%d+%]%]$')
        if not last or tonumber(last) <= now - (longest[scope] or 0) then old[#old + 1] = field end
    end
    many('HDEL', PREFIX .. 'rates', old)
end

drop_idle_slots()
drop_old_starts()
delete_records(redis.call('ZRANGEBYSCORE', PREFIX .. 'records:expiring', '-inf', NOW,
    'LIMIT', 0, tonumber(ARGV[4])))
local expired = redis.call('ZRANGEBYSCORE', PREFIX .. 'keys:expiring', '-inf', NOW,
    'LIMIT', 0, tonumber(ARGV[4]))
many('HDEL', PREFIX .. 'keys', expired)
many('ZREM', PREFIX .. 'keys:expiring', expired)
return #expired
