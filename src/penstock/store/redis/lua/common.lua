-- What every script begins with: the layout of the keys, the clock, and the places of a job.
--
-- KEYS[1]  the prefix of the namespace, `{namespace}:`; every other key is made from it
-- ARGV[1]  now in milliseconds, or '' for the server's clock
-- ARGV[2]  the clock of leases and terms in milliseconds, or '' for the server's clock
-- ARGV[3]  what was decided about conditions, as JSON, or '' (release.lua)
-- ARGV[4]… what the script itself is told
--
-- Answers: {'refused', error, …} when nothing may be written, {'decide', …} when conditions must
-- be looked at first; otherwise what the script's header says.
--
-- Words used below. A lane is the JSON text ["queue","tenant","type","limit key"], always made by
-- Python and never here, so that one lane has one spelling. A member is the digit priority - 1
-- and the id: jobs of one rank go by priority and then by id. An empty field of a job means the
-- same as a missing one.
--
-- Jobs
--   job:ID             hash; these fields never change:
--                        doc        JSON array, see keys.py (Doc)
--                        lane       its lane
--                        priority   missing: 5
--                        created_at
--                        key        field of `keys` that it may hold; missing without a unique key
--                        key_scope  missing without a unique key
--                        line       field of `lines`; missing without an order key
--                      and these do:
--                        payload    JSON text, never decoded here
--                        status, queued_at, started_at, completed_at, failed_at
--                        scheduled_at   missing: created_at
--                        updated_at     missing: the latest of the other times
--                        expires_at, timeout_ms (missing: the doc's)
--                        fence, attempts, snoozes, rescues, returns, waiting_on   missing: 0
--                        lease_owner    lease_until is its score in leases:OWNER
--                        cancel_requested_at, cancel_reason, error, error_details, checkpoint
--                        progress_percent, progress_message
--                        result     missing in a completed job: null
--                        xFENCE     one execution each, a JSON array, see keys.py (Ran)
--   jobs               zset: id by seq, the order in which they were made; `seq` counts it
--   of_parent:ID       zset: id by seq, of the jobs with this parent_job_id
--   of_schedule:ID     zset: id by seq, of the jobs of this schedule
--   ended:STATUS       zset: id by completed_at, for completed, cancelled and dead_letter
--   logs:ID            list of JSON arrays [at, fence, level, message]
--   keys               hash: JSON ["tenant","type","key"] -> 'scope expires_at id'
--   keys:expiring      zset: field of `keys` by expires_at, of the scope window
--
-- Places of waiting and running jobs
--   lanes              zset: "type""queue" \n LANE of every lane that may have jobs, all with score 0,
--                      so that a claim finds those of its types however many others there are
--   lane:LANE          zset: member by rank, the queued jobs
--   due                zset: id by scheduled_at, pending and failed jobs that wait for no other
--   expiring           zset: id by expires_at, of pending, queued and failed jobs
--   owners             set: every owner that may have leases
--   leases:OWNER       zset: id by lease_until
--   leased             hash: LANE \n OWNER -> leases          (zero is removed)
--   started            hash: LANE \n OWNER -> those of them that are marked as started
--   stops:OWNER        set: ids of its running jobs that somebody asked to stop
--   depths             hash: 'place queue' -> jobs; a place is a status, or blocked for a pending
--                      job that waits for others
--
-- Dead letters (bury.lua)
--   dead:ID            hash: lane, doc, payload, checkpoint, scheduled_at, made_at (the job's),
--                      reason, error, error_code, fingerprint, attempts, rescues, executions
--                      (JSON array of at most 50 of [fence, execution], the newest first),
--                      resolution, created_at, notes, resolved_by, resolved_at, canary_of
--   dead               zset: id by `dead:seq`, which counts the deaths
--   dead:pending       set: ids that nobody has looked at
--
-- Dependencies and lines (edges.lua, lines.lua)
--   edges:CHILD        hash: PARENT \n KIND \n ARGUMENT -> 'outcome closed_at TERMS', '- - TERMS'
--                      while open; terms are JSON [on_failure, on_requeue, position, condition]
--   inputs:CHILD       hash: the same field -> result of the parent, kept for the child's payload
--   children:PARENT    zset: CHILD \n KIND \n ARGUMENT by 0 while open, 1 when closed
--   edges:open         set: every parent with an open edge
--   lines              hash: JSON ["tenant","order key"] -> the last job in line
--
-- Controls (gates.lua)
--   pauses             hash: scope \n name -> JSON [created_at, reason, by], but for jobs
--   pauses:jobs        hash: id -> JSON [created_at, reason, by]
--   limits             hash: scope \n kind \n name -> JSON [capacity, interval_ms, by_operator]
--   limits:depth       hash: the same, of the kind depth, which claims do not look at
--   slots              hash: scope \n owner \n name -> slots
--   rates              hash: scope \n name -> JSON [[ms, count], …]
--   breakers           hash: name -> JSON [types, failures, cool_down_ms]
--   breakers:state     hash: name -> 'failed opened_at probe_id', '-' for none; missing: closed
--
-- The rest
--   schedules          hash: JSON ["tenant","name"] -> id
--   schedule:ID        hash: one schedule, see schedules.lua
--   schedules:due      zset: id by next_run_at, of the enabled ones
--   schedules:expiring zset: id by expires_at
--   workers            hash: owner -> JSON; workers:since hash: owner -> started_at;
--                      workers:seen zset: owner by heartbeat_at
--   leaders            hash: role -> 'until owner'
--   metrics:MS         zset: bucket by itself, of every resolution
--   metrics:MS:BUCKET  hash: name \n JSON ["type","queue"] -> value
--   meta               hash: layout (its version), rolled_up_at
--   moves              hash: what is written about a move, see model/moves.py (bookmarks.lua)
--   wake               the channel on which every change is told

local PREFIX = KEYS[1]
local call = redis.call
local FINE_MS = 10000
local PRIORITY_STEP_MS = 3600000
local DEFAULT_PRIORITY = 5

local function int(number)
    return string.format('%.0f', number)
end

local now, monotonic = tonumber(ARGV[1]), tonumber(ARGV[2])
if not now or not monotonic then
    local time = redis.call('TIME')
    local server = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
    now, monotonic = now or server, monotonic or server
end
local NOW, MONOTONIC = int(now), int(monotonic)

-- Runs a command with many arguments in pieces that fit on Lua's stack; `step` of them belong
-- together. Returns the sum of the answers, where they are numbers.
local function many(command, key, arguments, step)
    local total, size = 0, 1000 * (step or 1)
    for first = 1, #arguments, size do
        local last = math.min(first + size - 1, #arguments)
        local answer = redis.call(command, key, unpack(arguments, first, last))
        if type(answer) == 'number' then total = total + answer end
    end
    return total
end

local function job_key(id)
    return PREFIX .. 'job:' .. id
end

local function lane_key(lane)
    return PREFIX .. 'lane:' .. lane
end

local known_lanes = {}

-- {queue, tenant, type, limit key}
local function parts_of(lane)
    local parts = known_lanes[lane]
    if not parts then
        parts = cjson.decode(lane)
        known_lanes[lane] = parts
    end
    return parts
end

-- The JSON strings in a lane, as they are spelled there.
local function texts_of(lane)
    local texts, first, place = {}, 2, 3
    while place < #lane do
        local char = string.sub(lane, place, place)
        if char == '"' then
            texts[#texts + 1] = string.sub(lane, first, place)
            first, place = place + 2, place + 3
        else
            place = place + (char == '\\' and 2 or 1)
        end
    end
    return texts
end

local listed = {}

-- A lane as it stands in `lanes`, by its type.
local function listed_as(lane)
    if not listed[lane] then
        local queue, type_name = string.match(lane, '^%[("[^"\\]*"),"[^"\\]*",("[^"\\]*"),')
        if not queue then
            local texts = texts_of(lane)
            queue, type_name = texts[1], texts[3]
        end
        listed[lane] = type_name .. queue .. '\n' .. lane
    end
    return listed[lane]
end

local function lane_in(entry)
    return string.match(entry, '\n(.*)$')
end

-- Every lane that may have jobs.
local function all_lanes()
    local lanes = redis.call('ZRANGE', PREFIX .. 'lanes', 0, -1)
    for place, entry in ipairs(lanes) do lanes[place] = lane_in(entry) end
    return lanes
end

local function rank_of(due, priority)
    return due + (priority - 1) * PRIORITY_STEP_MS
end

local function member_of(id, priority)
    return string.char(47 + priority) .. id
end

local function id_of(member)
    return string.sub(member, 2)
end

local function priority_of(member)
    return string.byte(member) - 47
end

local sums, depth_sums, lease_sums, start_sums = {}, {}, {}, {}

-- Counts something for the figures; `label` is JSON ["type","queue"], made by Python.
local function measure(label, name, by)
    local field = name .. '\n' .. label
    sums[field] = (sums[field] or 0) + (by or 1)
end

-- The figures of a job of which only the lane is at hand.
local function label_of(lane)
    local parts = parts_of(lane)
    return cjson.encode({parts[3], parts[1]})
end

local function count_place(lane, place, by)
    local field = place .. ' ' .. parts_of(lane)[1]
    depth_sums[field] = (depth_sums[field] or 0) + by
end

local function count_lease(lane, owner, leases, started)
    local field = lane .. '\n' .. owner
    lease_sums[field] = (lease_sums[field] or 0) + leases
    start_sums[field] = (start_sums[field] or 0) + started
end

local function add_all(key, fields)
    for field, by in pairs(fields) do
        if by ~= 0 and redis.call('HINCRBY', key, field, by) == 0 then
            redis.call('HDEL', key, field)
        end
    end
end

-- Writes what was counted; enough for a script whose change nobody waits for.
local function write_counts()
    add_all(PREFIX .. 'depths', depth_sums)
    add_all(PREFIX .. 'leased', lease_sums)
    add_all(PREFIX .. 'started', start_sums)
    if next(sums) then
        local bucket = int(math.floor(now / FINE_MS) * FINE_MS)
        redis.call('ZADD', PREFIX .. 'metrics:' .. FINE_MS, bucket, bucket)
        add_all(PREFIX .. 'metrics:' .. FINE_MS .. ':' .. bucket, sums)
    end
end

-- Wakes who listens, too; every other script that changed something ends so.
local function finish()
    write_counts()
    redis.call('PUBLISH', PREFIX .. 'wake', '')
end

local LOOKED_AT = {
    'status', 'lane', 'priority', 'waiting_on', 'scheduled_at', 'created_at', 'queued_at',
    'started_at', 'expires_at', 'fence', 'attempts', 'snoozes', 'rescues', 'returns',
    'lease_owner', 'cancel_requested_at', 'cancel_reason', 'key', 'key_scope', 'line',
    'error_details',
}
local AS_NUMBERS = {
    priority = DEFAULT_PRIORITY, waiting_on = 0, fence = 0, attempts = 0, snoozes = 0,
    rescues = 0, returns = 0, created_at = 0,
}
local AS_TIMES = {'queued_at', 'started_at', 'expires_at', 'cancel_requested_at', 'scheduled_at'}

-- What decides how a job may go on, with numbers as numbers; nil for an unknown id.
local function look(id)
    local found = redis.call('HMGET', job_key(id), unpack(LOOKED_AT))
    if not found[1] then return nil end
    local job = {id = id}
    for place, name in ipairs(LOOKED_AT) do
        if found[place] and found[place] ~= '' then job[name] = found[place] end
    end
    for name, default in pairs(AS_NUMBERS) do job[name] = tonumber(job[name]) or default end
    for _, name in ipairs(AS_TIMES) do job[name] = tonumber(job[name]) end
    job.scheduled_at = job.scheduled_at or job.created_at
    return job
end

local ENDED = {completed = true, cancelled = true, dead_letter = true}
local STAGED = {pending = true, failed = true}
local EXPIRES = {pending = true, queued = true, failed = true}

local function place_of(job)
    return job.status == 'pending' and job.waiting_on > 0 and 'blocked' or job.status
end

local function enter_lane(lane, rank, member)
    redis.call('ZADD', PREFIX .. 'lanes', 0, listed_as(lane))
    redis.call('ZADD', lane_key(lane), int(rank), member)
end

local function forget_empty_lane(lane)
    if redis.call('EXISTS', lane_key(lane)) == 0 then
        redis.call('ZREM', PREFIX .. 'lanes', listed_as(lane))
    end
end

local function leave_lane(lane, member)
    redis.call('ZREM', lane_key(lane), member)
    forget_empty_lane(lane)
end

-- Takes a lease out of all that knows of it.
local function drop_lease(job)
    local owner = job.lease_owner or ''
    redis.call('ZREM', PREFIX .. 'leases:' .. owner, job.id)
    if job.cancel_requested_at then redis.call('SREM', PREFIX .. 'stops:' .. owner, job.id) end
    count_lease(job.lane, owner, -1, job.started_at and -1 or 0)
end

-- Takes a job, as it was looked at, out of the place where its status keeps it.
local function leave(job)
    if ENDED[job.status] then
        redis.call('ZREM', PREFIX .. 'ended:' .. job.status, job.id)
        return
    end
    count_place(job.lane, place_of(job), -1)
    if job.status == 'queued' then
        leave_lane(job.lane, member_of(job.id, job.priority))
    elseif job.status == 'in_progress' then
        drop_lease(job)
    elseif STAGED[job.status] then
        redis.call('ZREM', PREFIX .. 'due', job.id)
    end
    if job.expires_at and EXPIRES[job.status] then
        redis.call('ZREM', PREFIX .. 'expiring', job.id)
    end
end

-- Puts a job into the place of a new status; the fields of its hash are the caller's to write.
-- A queued job goes by its own due time. Only a claim makes a job in_progress.
local function enter(job, status)
    job.status = status
    if ENDED[status] then
        redis.call('ZADD', PREFIX .. 'ended:' .. status, NOW, job.id)
        return
    end
    count_place(job.lane, place_of(job), 1)
    if status == 'queued' then
        local rank = rank_of(job.scheduled_at, job.priority)
        enter_lane(job.lane, rank, member_of(job.id, job.priority))
    elseif STAGED[status] and job.waiting_on == 0 then
        redis.call('ZADD', PREFIX .. 'due', int(job.scheduled_at), job.id)
    end
    if job.expires_at and EXPIRES[status] then
        redis.call('ZADD', PREFIX .. 'expiring', int(job.expires_at), job.id)
    end
end

-- The job that holds a unique key, or nil.
local function holder_of(key)
    local held = redis.call('HGET', PREFIX .. 'keys', key)
    if not held then return nil end
    local scope, expires_at, id = string.match(held, '^(%S+) (%S+) (.*)$')
    if expires_at ~= '-' and tonumber(expires_at) <= now then return nil end
    return id, scope
end

local function take_key(key, id, scope, window_ms)
    local expires_at = '-'
    if scope == 'window' then
        expires_at = int(now + (window_ms or 0))
        redis.call('ZADD', PREFIX .. 'keys:expiring', expires_at, key)
    else
        redis.call('ZREM', PREFIX .. 'keys:expiring', key)
    end
    redis.call('HSET', PREFIX .. 'keys', key, scope .. ' ' .. expires_at .. ' ' .. id)
end

local RELEASED_AT_END = {while_pending = true, until_done = true}

-- Lets go of a key that a job holds only until it is done (or, at its claim, only until then).
local function release_key(key, id, scope)
    if not RELEASED_AT_END[scope] then return end
    local holder, held_as = holder_of(key)
    if holder == id and RELEASED_AT_END[held_as] then redis.call('HDEL', PREFIX .. 'keys', key) end
end

-- An execution that ended now, to be kept as xFENCE: the worker's name as JSON, and JSON text
-- from the status on, with the closing bracket.
local function ran(owner_json, rest)
    return '[' .. NOW .. ',' .. owner_json .. ',' .. rest
end

-- Called first by a script that must go on when the memory is full, so that work can end: the
-- server holds back only a script whose first write could grow.
local function despite_full_memory()
    redis.call('DEL', PREFIX .. 'room')
end
