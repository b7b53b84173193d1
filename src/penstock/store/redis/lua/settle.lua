-- End leases. First every fence is looked at: while one is stale, nothing is written.
--
-- needs: common
-- later: release gives undecided, end_jobs
-- later: endings gives endings
-- later: breakers gives heed_breakers
-- ARGV[4]  the owner
-- ARGV[5]  JSON: sums, [field of the figures, by] each, for the completed ones; others, the other
--          endings (endings.lua), with label, duration and wait for their figures, their place
--          among all settlements, and counted, whether a breaker counts their error
-- ARGV[6]… the completed ones, four arguments each: id, fence, the execution's JSON from its
--          status on, result
-- answers  1, or {'stale', {{id, fence, 1 if it was settled before}…}}

despite_full_memory()
local owner, told = ARGV[4], cjson.decode(ARGV[5])
local owner_json = cjson.encode(owner)
local MAY_COMPLETE = {from complete}
local stale, held, results = {}, {}, {}

-- The same settlement sent twice, because its answer was lost, is not a stale one.
local function settled_before(id, fence)
    local text = redis.call('HGET', job_key(id), 'x' .. fence)
    if not text then return 0 end
    local execution = cjson.decode(text)
    return execution[2] == owner and execution[3] ~= 'lost' and 1 or 0
end

for first = 6, #ARGV, 4 do
    local id = ARGV[first]
    local found = call('HMGET', job_key(id), 'status', 'fence', 'lease_owner', 'lane',
        'started_at', 'attempts', 'cancel_requested_at', 'key', 'key_scope', 'error', 'updated_at')
    if MAY_COMPLETE[found[1]] and found[2] == ARGV[first + 1] and found[3] == owner then
        held[first] = found
        results[id] = ARGV[first + 3]
    else
        stale[#stale + 1] = {id, ARGV[first + 1], settled_before(id, ARGV[first + 1])}
    end
end
local jobs = {}
for place, ending in ipairs(told.others) do
    local job = look(ending.id)
    if job and job.status == 'in_progress' and job.fence == ending.fence
        and job.lease_owner == owner then
        jobs[place] = job
    else
        local fence = int(ending.fence)
        stale[#stale + 1] = {ending.id, fence, settled_before(ending.id, fence)}
    end
end
if #stale > 0 then return {'stale', stale} end

local undecided, end_jobs
if redis.call('EXISTS', PREFIX .. 'edges:open', PREFIX .. 'lines') > 0 then
    undecided, end_jobs = later_release()
    local question = undecided(results)
    if question then return question end
end

local ended, completed, count, ended_in = {}, {}, 0, {}

-- One row for all of them, so that each costs one command and no table.
local row = {'', 'status', 'completed', 'lease_owner', '', 'attempts', 0, 'completed_at', NOW}
local last = 0

local function add(name, value)
    row[last + 1], row[last + 2] = name, value
    last = last + 2
end

local function complete(first, found)
    local id, lane, rest, result = ARGV[first], found[4], ARGV[first + 2], ARGV[first + 3]
    local key = job_key(id)
    row[1], row[7], row[10] = key, (tonumber(found[6]) or 0) + 1, 'x' .. found[2]
    row[11] = ran(owner_json, rest)
    last = 11
    local started_at = string.match(rest, '^"completed",(%d+)')
    if started_at ~= found[5] then add('started_at', started_at) end
    if found[11] then add('updated_at', NOW) end
    if result ~= 'null' then add('result', result) end
    call('HSET', unpack(row, 1, last))
    if found[10] then call('HDEL', key, 'error', 'error_details') end
    if found[7] then
        call('HDEL', key, 'cancel_requested_at', 'cancel_reason')
        call('SREM', PREFIX .. 'stops:' .. owner, id)
    end
    if found[8] then release_key(found[8], id, found[9]) end
    local group = ended_in[lane]
    if not group then
        group = {count = 0, started = 0}
        ended_in[lane] = group
    end
    group.count = group.count + 1
    if found[5] ~= '' then group.started = group.started + 1 end
    completed[2 * count + 1] = NOW
    completed[2 * count + 2] = id
    count = count + 1
    ended[count] = id
end

-- What breakers hear, in the order in which the executions were settled.
local function events_in_order()
    local events, count = {}, 0
    for place, ending in ipairs(told.others) do
        local type_name = parts_of(jobs[place].lane)[3]
        events[ending.place] = {
            id = ending.id, type = type_name, kind = ending.kind, counted = ending.counted,
        }
    end
    for first = 6, #ARGV, 4 do
        repeat count = count + 1 until not events[count]
        local type_name = parts_of(held[first][4])[3]
        events[count] = {id = ARGV[first], type = type_name, kind = 'completed', counted = false}
    end
    return events
end

for first = 6, #ARGV, 4 do complete(first, held[first]) end
for lane, group in pairs(ended_in) do
    count_lease(lane, owner, -group.count, -group.started)
    count_place(lane, 'in_progress', -group.count)
end
if count > 0 then
    many('ZREM', PREFIX .. 'leases:' .. owner, ended)
    many('ZADD', PREFIX .. 'ended:completed', completed, 2)
end
for _, sum in ipairs(told.sums) do sums[sum[1]] = (sums[sum[1]] or 0) + sum[2] end
local endings = #told.others > 0 and later_endings()
for place, ending in ipairs(told.others) do
    local name = endings[ending.kind](jobs[place], ending)
    if name == 'cancelled' or name == 'dead' then ended[#ended + 1] = ending.id end
    if name ~= 'handed_back' then
        measure(ending.label, name)
        measure(ending.label, ending.duration)
        measure(ending.label, ending.wait)
    end
end
if end_jobs then end_jobs(ended) end
if redis.call('EXISTS', PREFIX .. 'breakers') == 1 then later_breakers()(events_in_order()) end
finish()
return 1
