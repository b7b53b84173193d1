-- Inserting jobs, all of a call or none. Shared by enqueue.lua and fire_schedule.lua.
--
-- Jobs arrive as ARGV[first], the shapes as a JSON array of objects, and then three arguments
-- each: id, number of the shape, payload. Many jobs have one shape:
--   lane, doc, priority, delay_ms or scheduled_at, expires_in_ms or expires_at,
--   key, key_scope, key_window_ms, line, parent_job_id, schedule_id, after (edges)

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
    local shapes = cjson.decode(ARGV[first])
    local plan = {ids = {}, shape_of = {}, payloads = {}, answers = {}, created = {}, all = true}
    for argument = first + 1, #ARGV, 3 do
        local place = #plan.ids + 1
        plan.ids[place] = ARGV[argument]
        plan.shape_of[place] = shapes[tonumber(ARGV[argument + 1])]
        plan.payloads[place] = ARGV[argument + 2]
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
    shape.fields = fields
end

local function append(lists, name, score, member)
    local list = lists[name]
    if not list then
        list = {}
        lists[name] = list
    end
    list[#list + 1] = score
    list[#list + 1] = member
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
        redis.call('HSET', key, 'status', status, 'payload', payload, 'queued_at', NOW,
            unpack(shape.fields))
    else
        redis.call('HSET', key, 'status', status, 'payload', payload, unpack(shape.fields))
    end
    if waits > 0 then redis.call('HSET', key, 'waiting_on', waits) end
    return status, waits
end

-- Inserts the jobs of a plan; `waits` counts the edges of those that have any.
local function insert_jobs(plan, waits)
    local lanes, scored = {}, {}
    local last = redis.call('INCRBY', PREFIX .. 'seq', #plan.created) - #plan.created
    for count, place in ipairs(plan.created) do
        local id, shape = plan.ids[place], plan.shape_of[place]
        prepare(shape)
        local status, waiting = insert_job(id, shape, plan.payloads[place], waits[id] or 0)
        local seq = last + count
        append(scored, 'jobs', seq, id)
        if status == 'queued' then
            append(lanes, shape.lane, shape.rank, member_of(id, shape.priority))
        elseif waiting == 0 then
            append(scored, 'due', int(shape.due), id)
        end
        count_place(shape.lane, waiting > 0 and 'blocked' or status, 1)
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
    for lane, members in pairs(lanes) do
        redis.call('ZADD', PREFIX .. 'lanes', 0, listed_as(lane))
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
