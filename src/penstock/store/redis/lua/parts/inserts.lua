-- Inserting jobs, all of a call or none. Shared by enqueue.lua and fire_schedule.lua.
--
-- Jobs arrive as ARGV[first], JSON {"shapes": […], "runs": [[number of the shape, jobs], …]}, and
-- then two arguments each: id and payload. Many jobs in a row have one shape:
--   lane, doc, priority, delay_ms or scheduled_at, expires_in_ms or expires_at,
--   key, key_scope, key_window_ms, line, keep, parent_job_id, schedule_id, after (edges)

local function given(value)
    if value == cjson.null then return nil end
    return value
end

-- Which ids there are already, as a set; mostly there is none, and one question tells.
local function known_among(ids)
    local found, keys = {}, {}
    for place, id in ipairs(ids) do keys[place] = job_key(id) end
    for first = 1, #keys, 1000 do
        local last = math.min(first + 999, #keys)
        if redis.call('EXISTS', unpack(keys, first, last)) > 0 then
            for place = first, last do
                if redis.call('EXISTS', keys[place]) == 1 then found[ids[place]] = true end
            end
        end
    end
    return found
end

-- Decides which jobs are new, without writing anything.
local function plan_jobs(first)
    local told = cjson.decode(ARGV[first])
    local plan = {ids = {}, shape_of = {}, payloads = {}, answers = {}, created = {}, all = true}
    for _, shape in ipairs(told.shapes) do
        if given(shape.after) then plan.linked = true end
    end
    local place, argument = 0, first + 1
    for _, run in ipairs(told.runs) do
        for _ = 1, run[2] do
            place = place + 1
            plan.ids[place], plan.payloads[place] = ARGV[argument], ARGV[argument + 1]
            plan.shape_of[place] = told.shapes[run[1]]
            argument = argument + 2
        end
    end
    local known, taken = known_among(plan.ids), {}
    for place, id in ipairs(plan.ids) do
        local key = given(plan.shape_of[place].key)
        local holder = known[id] and id or key and (taken[key] or holder_of(key))
        if holder then
            plan.all = false
        else
            plan.created[#plan.created + 1] = place
            known[id] = true
            if key then taken[key] = id end
        end
        plan.answers[place] = holder or id
    end
    return plan
end

-- What all jobs of one shape have in common, worked out once.
local function prepare(shape)
    if shape.due then return end
    shape.priority = shape.priority or DEFAULT_PRIORITY
    shape.due = given(shape.scheduled_at) or now + shape.delay_ms
    shape.rank = int(rank_of(shape.due, shape.priority))
    shape.digit = member_of('', shape.priority)
    shape.expires = given(shape.expires_at)
    if not shape.expires and given(shape.expires_in_ms) then
        shape.expires = now + shape.expires_in_ms
    end
    local fields = {'doc', shape.doc, 'lane', shape.lane, 'created_at', NOW}
    local function add(name, value)
        if given(value) then
            fields[#fields + 1] = name
            fields[#fields + 1] = value
        end
    end
    if shape.priority ~= DEFAULT_PRIORITY then add('priority', int(shape.priority)) end
    if shape.due ~= now then add('scheduled_at', int(shape.due)) end
    if shape.expires then add('expires_at', int(shape.expires)) end
    add('key', shape.key)
    add('key_scope', shape.key_scope)
    add('line', shape.line)
    add('keep', shape.keep)
    shape.fields, shape.places = fields, {}
    shape.is_listed = shape.expires or given(shape.key) or given(shape.parent_job_id)
        or given(shape.schedule_id)
end

local function append(lists, name, score, member)
    local list = lists[name]
    if not list then
        list = {count = 0}
        lists[name] = list
    end
    local count = list.count
    list[count + 1], list[count + 2], list.count = score, member, count + 2
end

-- Writes one new job and says where it stands; `waits` is the number of its edges.
local function insert_job(id, shape, payload, waits)
    local joined = shape.due <= now and waits == 0
    local ready = joined
    if ready and given(shape.line) then
        ready = join_line(id, shape.line)
        waits = ready and 0 or 1
    end
    local status = ready and 'queued' or 'pending'
    local key = job_key(id)
    if joined then
        call('HSET', key, 'status', status, 'payload', payload, 'queued_at', NOW,
            unpack(shape.fields))
    else
        call('HSET', key, 'status', status, 'payload', payload, unpack(shape.fields))
    end
    if waits > 0 then call('HSET', key, 'waiting_on', waits) end
    record_change(id, shape.lane, status, 0)
    return status, waits
end

-- Lists a new job wherever its shape asks for it.
local function list_job(scored, id, shape, seq)
    if shape.expires then append(scored, 'expiring', int(shape.expires), id) end
    if given(shape.key) then
        take_key(shape.key, id, shape.key_scope, given(shape.key_window_ms))
    end
    if given(shape.parent_job_id) then
        append(scored, 'of_parent:' .. shape.parent_job_id, seq, id)
    end
    if given(shape.schedule_id) then
        append(scored, 'of_schedule:' .. shape.schedule_id, seq, id)
    end
end

-- Inserts the jobs of a plan; `waits` counts the edges of those that have any.
local function insert_jobs(plan, waits)
    local lanes, scored, shapes = {}, {}, {}
    local seq = call('INCRBY', PREFIX .. 'seq', #plan.created) - #plan.created
    for _, place in ipairs(plan.created) do
        local id, shape = plan.ids[place], plan.shape_of[place]
        prepare(shape)
        shapes[shape] = true
        seq = seq + 1
        local status, waiting = insert_job(id, shape, plan.payloads[place], waits[id] or 0)
        append(scored, 'jobs', seq, id)
        if status == 'queued' then
            append(lanes, shape.lane, shape.rank, shape.digit .. id)
        elseif waiting == 0 then
            append(scored, 'due', int(shape.due), id)
        else
            status = 'blocked'
        end
        shape.places[status] = (shape.places[status] or 0) + 1
        if shape.is_listed then list_job(scored, id, shape, seq) end
    end
    for shape in pairs(shapes) do
        for status, count in pairs(shape.places) do count_place(shape.lane, status, count) end
    end
    for lane, members in pairs(lanes) do
        call('ZADD', PREFIX .. 'lanes', 0, listed_as(lane))
        many('ZADD', lane_key(lane), members, 2)
    end
    for name, members in pairs(scored) do many('ZADD', PREFIX .. name, members, 2) end
end

-- {id, 1 if this call created it} for every job of the call; 1 alone when it created all.
local function answers_of(plan)
    if plan.all then return 1 end
    local made, answers = {}, {}
    for _, place in ipairs(plan.created) do made[place] = true end
    for place, id in ipairs(plan.answers) do answers[place] = {id, made[place] and 1 or 0} end
    return answers
end
