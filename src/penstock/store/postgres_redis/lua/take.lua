-- Take ready jobs out of the windows: tenants in turn, each tenant's lowest rank first.
--
-- ARGV[1]  JSON: types, queues, max_priority, limit, last_tenant, now (by PostgreSQL's clock),
--          fresh_ms (how old a filling may be), refill_ms (how long one may take; 0: not this time)
-- ARGV[2]  what this process has to tell first, as `put` takes it, or ''
-- answers  {'taken', last tenant, due or '', members…};
--          {'refill', doubts}: the caller is to fill the windows and ask again;
--          {'own way', 1 if something is due}: the caller is to ask PostgreSQL

if ARGV[2] ~= '' then put(cjson.decode(ARGV[2])) end
local asked = cjson.decode(ARGV[1])
local state = {}
do
    local names = {'filled_at', 'doubts', 'answered', 'gated', 'crowded', 'due', 'expires'}
    local found = redis.call('HMGET', STATE, unpack(names))
    for place, name in ipairs(names) do state[name] = found[place] or nil end
end

local function may_refill()
    return asked.refill_ms > 0 and redis.call(
        'SET', PREFIX .. 'refilling', '', 'NX', 'PX', asked.refill_ms)
end

local function refill_or_own_way()
    if may_refill() then return {'refill', state.doubts or '0'} end
    return {'own way', 0}
end

local function has_come(time)
    return time and tonumber(time) <= asked.now
end

if not state.filled_at or (state.doubts or '0') ~= state.answered then return refill_or_own_way() end
local time = redis.call('TIME')
local age = tonumber(time[1]) * 1000 + tonumber(time[2]) / 1000 - tonumber(state.filled_at)
local old = age < 0 or age > asked.fresh_ms
if state.gated or state.crowded then
    if old then return refill_or_own_way() end
    return {'own way', 0}
end
if has_come(state.due) or has_come(state.expires) then return {'own way', 1} end
-- Another process fills already, or did just now: until then the windows will do.
if old and may_refill() then return {'refill', state.doubts or '0'} end

local function set_of(names)
    if names == cjson.null then return nil end
    local set = {}
    for _, name in ipairs(names) do set[name] = true end
    return set
end

local types, queues = set_of(asked.types), set_of(asked.queues)
local urgent = asked.max_priority ~= cjson.null and asked.max_priority
local lanes_of, tenants, lanes = {}, {}, 0
for _, lane in ipairs(redis.call('SMEMBERS', LANES)) do
    local queue, tenant, type_name = unpack(cjson.decode(lane))
    if types[type_name] and (not queues or queues[queue]) then
        if horizon_of(lane) < math.huge
            and (urgent or redis.call('ZCARD', lane_key(lane)) < asked.limit) then
            return refill_or_own_way()
        end
        if not lanes_of[tenant] then
            lanes_of[tenant] = {}
            tenants[#tenants + 1] = tenant
        end
        table.insert(lanes_of[tenant], lane)
        lanes = lanes + 1
    end
end

local CHUNK = math.max(16, math.ceil(asked.limit / math.max(1, lanes)))

-- A lane's jobs, fetched in pieces as they are asked for; `rank` and `member` of the next one.
local function line_of(lane)
    local line = {lane = lane, taken = {}}
    local found, place, offset = {}, 1, 0
    function line.advance()
        repeat
            if not found[place] then
                if offset > 0 and #found < 2 * CHUNK then
                    line.member = nil
                    return
                end
                found = redis.call('ZRANGE', lane_key(lane), offset, offset + CHUNK - 1, 'WITHSCORES')
                offset, place = offset + CHUNK, 1
            end
            line.member, line.rank = found[place], tonumber(found[place + 1] or nil)
            place = place + 2
        until not line.member or not urgent or string.byte(line.member) - 47 <= urgent
    end
    line.advance()
    return line
end

local function next_of(lines)
    local first = nil
    for _, line in ipairs(lines) do
        if line.member and (not first or line.rank < first.rank
            or (line.rank == first.rank and line.member < first.member)) then
            first = line
        end
    end
    return first
end

table.sort(tenants, function(one, other)
    local one_had, other_had = one <= asked.last_tenant, other <= asked.last_tenant
    if one_had ~= other_had then return other_had end
    return one < other
end)
local turns = {}
for place, tenant in ipairs(tenants) do
    turns[place] = {tenant = tenant, lines = {}}
    for number, lane in ipairs(lanes_of[tenant]) do turns[place].lines[number] = line_of(lane) end
end

local answer, all_lines = {'taken', asked.last_tenant, state.due or ''}, {}
for _, turn in ipairs(turns) do
    for _, line in ipairs(turn.lines) do all_lines[#all_lines + 1] = line end
end
local limit = asked.limit
while #turns > 0 and limit > 0 do
    local left = {}
    for _, turn in ipairs(turns) do
        local line = limit > 0 and next_of(turn.lines)
        if line then
            answer[#answer + 1] = line.member
            line.taken[#line.taken + 1] = line.member
            answer[2] = turn.tenant
            limit = limit - 1
            line.advance()
            left[#left + 1] = turn
        end
    end
    turns = left
end

for _, line in ipairs(all_lines) do
    for first = 1, #line.taken, PIECE do
        local last = math.min(first + PIECE - 1, #line.taken)
        redis.call('ZREM', lane_key(line.lane), unpack(line.taken, first, last))
    end
    if redis.call('EXISTS', lane_key(line.lane)) == 0 and horizon_of(line.lane) == math.huge then
        redis.call('SREM', LANES, line.lane)
    end
end
return answer
