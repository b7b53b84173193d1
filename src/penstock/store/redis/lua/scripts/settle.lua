-- End leases. First every fence is looked at: while one is stale, nothing is written.
--
-- needs: common
-- later: release gives undecided, end_jobs
-- later: endings gives endings
-- later: breakers gives heed_breakers
-- reads: breakers, followers:…
-- writes: breakers:state, canaries:…, changes:…, children:…, dead, dead:seq, dead:…, depths,
--   depths:…, due, edges:open, edges:…, ended:last:…, ended:own, ended:…, expiring, group:open:…,
--   group:…, groups:open:…, groups:…, inputs:…, job:…, keys, lane:…, lanes, leased, leases:…,
--   letters:open, letters:open:…, lines, metrics:live, metrics:totals, metrics:…, pauses:jobs,
--   room, started, stops:…, wake
-- ARGV[4]  the owner
-- ARGV[5]  JSON: sums, [field of the figures, by] each, for the completed ones; others, the other
--          endings (endings.lua), with label, duration and wait (the steps of their histograms),
--          duration_ms and wait_ms for their figures, their place among all settlements, and
--          counted, whether a breaker counts their error
-- ARGV[6]… the completed ones, four arguments each: id, fence, the execution's JSON from its
--          status on, result
-- answers  1, or {'stale', {{id, fence, 1 if it was settled before}…}}

despite_full_memory()
local owner, told = ARGV[4], cjson.decode(ARGV[5])
local MAY_COMPLETE = {from complete}
local stale, held = {}, {}

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
        'started_at', 'key', 'keep')
    if MAY_COMPLETE[found[1]] and found[2] == ARGV[first + 1] and found[3] == owner then
        held[first] = found
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
    local results = {}
    for first = 6, #ARGV, 4 do results[ARGV[first]] = ARGV[first + 3] end
    local question = undecided(results)
    if question then return question end
end

local ended, completed, count, ended_in = {}, {}, 0, {}

local ran_here = '[' .. NOW .. ',' .. cjson.encode(owner) .. ','
local stops = PREFIX .. 'stops:' .. owner
local any_stops = call('EXISTS', stops) == 1

-- What an earlier lease or somebody else left in the job, and its end takes away.
local function clear(id, key, found)
    if found[2] ~= '1' then call('HDEL', key, 'error', 'error_details') end
    if any_stops and call('SREM', stops, id) == 1 then
        call('HDEL', key, 'cancel_requested_at', 'cancel_reason')
    end
    if found[6] then release_key(found[6], id, call('HGET', key, 'key_scope')) end
end

local function complete(first, found)
    local id, lane, rest, result = ARGV[first], found[4], ARGV[first + 2], ARGV[first + 3]
    local key, execution = job_key(id), 'x' .. found[2]
    if result == 'null' then
        call('HSET', key, 'status', 'completed', execution, ran_here .. rest)
    else
        call('HSET', key, 'status', 'completed', execution, ran_here .. rest, 'result', result)
    end
    record_change(id, lane, 'completed', found[2])
    clear(id, key, found)
    local group = ended_in[lane]
    if not group then
        group = {count = 0, started = 0}
        ended_in[lane] = group
    end
    group.count = group.count + 1
    if (found[5] or '') ~= '' then group.started = group.started + 1 end
    if found[7] then keep_own(id, lane, 'completed', found[7], now) end
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
for _, sum in ipairs(told.sums) do gather(sum[1], sum[2]) end
local endings = #told.others > 0 and later_endings()
for place, ending in ipairs(told.others) do
    local name = endings[ending.kind](jobs[place], ending)
    local lane = jobs[place].lane
    if name == 'cancelled' or name == 'dead' then
        ended[#ended + 1] = ending.id
        measure_end(lane, name, jobs[place].attempts)
    elseif name ~= 'handed_back' then
        measure(lane, name)
    end
    if name ~= 'handed_back' then
        measure(lane, ending.duration)
        measure(lane, ending.wait)
        measure(lane, 'duration_sum', ending.duration_ms)
        measure(lane, 'duration_max', ending.duration_ms)
        measure(lane, 'wait_sum', ending.wait_ms)
    end
    if ending.started ~= false then measure(lane, 'started') end
end
if end_jobs then end_jobs(ended) end
if redis.call('EXISTS', PREFIX .. 'breakers') == 1 then later_breakers()(events_in_order()) end
finish()
return 1
