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
-- Backups
--   copies:ID:…        every key as it was when backup ID began (copy_keys.lua); they expire
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
--                        keep       when it is removed, if it says so itself (keeping.lua)
--                      and these do:
--                        payload    JSON text, never decoded here
--                        status, queued_at, started_at, completed_at, failed_at
--                        scheduled_at   missing: created_at
--                        updated_at     missing: the latest of the other times
--                        expires_at, timeout_ms (missing: the doc's)
--                        fence, attempts, snoozes, rescues, returns, waiting_on   missing: 0
--                        lease_owner    lease_until is its score in leases:OWNER; says nothing
--                                       in a completed job
--                        cancel_requested_at, cancel_reason, error, error_details, checkpoint
--                        progress_percent, progress_message, progress (JSON text)
--                        result     missing in a completed job: null
--                        xFENCE     one execution each, a JSON array, see keys.py (Ran)
--                      A completed job without completed_at has its times from its last execution,
--                      which attempts does not count yet.
--   jobs               zset: id by seq, the order in which they were made; `seq` counts it
--   of_parent:ID       zset: id by seq, of the jobs with this parent_job_id
--   of_schedule:ID     zset: id by seq, of the jobs of this schedule
--   ended:STATUS       zset: id by completed_at, for completed, cancelled and dead_letter
--   ended:own, ended:last:…   see keeping.lua
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
--   depths:TENANT      hash: the same, of the jobs of one tenant
--
-- Dead letters (bury.lua, letter_lists.lua)
--   dead:ID            hash: lane, doc, payload, checkpoint, scheduled_at, made_at (the job's),
--                      reason, error, error_code, fingerprint, attempts, rescues, executions
--                      (JSON array of at most 50 of [fence, execution], the newest first),
--                      resolution, created_at, notes, resolved_by, resolved_at, canary_of
--   dead               zset: id by `dead:seq`, which counts the deaths
--   letters:open       zset: id by the same number, of those that are neither resolved nor ignored
--   letters:open:TYPE  zset: the same, of one type
--   canaries:ID        zset: the same, of those with this canary_of
--   group:SCOPE \n GROUP       zset: the same, of one group; a group is TYPE \n FINGERPRINT, a scope
--                      `*` for all tenants or `=TENANT`
--   group:open:SCOPE \n GROUP  zset: those of them that are open
--   groups:SCOPE       zset: GROUP by the number of its newest letter
--   groups:open:SCOPE  zset: the same, of those that have open letters
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
-- Followers (changes.lua)
--   followers          hash: name -> JSON array of the statuses it is told of
--   followers:STATUS   set: names, of those that are told of this status
--   changes:NAME       stream: what it has not confirmed, 'status fence at LANE \n ID' each
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
--   metrics:MS:BUCKET  hash: name \n JSON ["type","queue"] -> value, the name of a tenant's own
--                      counter being NAME@TENANT; the day 0 has all days that were dropped
--   metrics:live       the finest step that is being written to
--   metrics:totals     hash: the same fields -> counters since the beginning, without those of the
--                      live step (counts.lua)
--   records            hash: KIND \n NAME -> 'revision updated_at expires_at DOCUMENT', '-' for a
--                      record that does not expire (records.lua)
--   records:names      zset: KIND \n NAME of each, all with score 0, in the order of names
--   records:expiring   zset: KIND \n NAME by expires_at
--   audit              zset: entry by seq, a JSON array of the fields of model/audit.py (Entry)
--   meta               hash: layout (its version), rolled_up_at
--   delivered          zset: id by the time its row left the outbox, +inf before (deliver.lua)
--   moves              hash: what is written about a move, see model/transfer.py (bookmarks.lua)
--   room               never there: a script that deletes it first may write while memory is full
--   wake               the channel on which every change is told
--
-- needs: ground lanes counts unique_keys changes keeping

local LOOKED_AT = {
    'status', 'lane', 'priority', 'waiting_on', 'scheduled_at', 'created_at', 'queued_at',
    'started_at', 'expires_at', 'fence', 'attempts', 'snoozes', 'rescues', 'returns',
    'lease_owner', 'cancel_requested_at', 'cancel_reason', 'key', 'key_scope', 'line',
    'error_details', 'keep',
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
        if job.keep then forget_own(job.id, job.lane, job.status, job.keep) end
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

-- Puts a job into the place of a new status, and tells; the fields of its hash are the caller's to
-- write.
-- A queued job goes by its own due time. Only a claim makes a job in_progress.
local function enter(job, status)
    if job.status ~= status then record_change(job.id, job.lane, status, int(job.fence)) end
    job.status = status
    if ENDED[status] then
        redis.call('ZADD', PREFIX .. 'ended:' .. status, NOW, job.id)
        if job.keep then keep_own(job.id, job.lane, status, job.keep, now) end
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
