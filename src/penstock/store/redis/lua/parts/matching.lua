-- Whether a job is one of those looked for. `wanted` is a table: statuses (a list), type, queue,
-- category, tenant_id, workspace_id, created_by, tag, parent_job_id, schedule_id, lease_owner, since,
-- until, texts (in lower case, any of them), payload ({path, value} each, the path a list); what is
-- missing does not matter.
-- needs: common

local CATEGORY, CREATED_BY, TAGS, WORKSPACE, PARENT, SCHEDULE, KEY = 3, 7, 8, 9, 10, 11, 13
local known_docs = {}

-- The doc of a job; one that was edited by hand has nothing in it.
local function doc_of(text)
    local doc = known_docs[text]
    if not doc then
        local sound, decoded = pcall(cjson.decode, text)
        doc = sound and type(decoded) == 'table' and decoded or {}
        known_docs[text] = doc
    end
    return doc
end

local function has(list, value)
    if type(list) ~= 'table' then return false end
    for _, each in ipairs(list) do
        if each == value then return true end
    end
    return false
end

local function same(one, other)
    if type(one) ~= 'table' or type(other) ~= 'table' then return one == other end
    for name, value in pairs(one) do
        if not same(value, other[name]) then return false end
    end
    for name in pairs(other) do
        if one[name] == nil then return false end
    end
    return true
end

-- Python looks again: here numbers lose digits, and an empty list is an empty object.
local function holds(payload, conditions)
    local sound, document = pcall(cjson.decode, payload)
    if not sound then return false end
    for _, condition in ipairs(conditions) do
        local value = document
        for _, step in ipairs(condition[1]) do
            if type(value) ~= 'table' then return false end
            local inside = value[step]
            if inside == nil then inside = value[(tonumber(step) or -1) + 1] end
            value = inside
        end
        if value == nil or not same(value, condition[2]) then return false end
    end
    return true
end

local function mentions(texts, ...)
    for place = 1, select('#', ...) do
        local field = select(place, ...)
        if type(field) == 'string' then
            local lower = string.lower(field)
            for _, text in ipairs(texts) do
                if string.find(lower, text, 1, true) then return true end
            end
        end
    end
    return false
end

-- Many jobs share a lane and a doc: each is looked at once.
local function remembered(test)
    local known = {}
    return function(text)
        if known[text] == nil then known[text] = test(text) end
        return known[text]
    end
end

local function about_lane(wanted)
    return remembered(function(text)
        local lane = parts_of(text)
        return (wanted.queue or lane[1]) == lane[1] and (wanted.tenant_id or lane[2]) == lane[2]
            and (wanted.type or lane[3]) == lane[3]
    end)
end

local function about_doc(wanted)
    return remembered(function(text)
        local doc = doc_of(text)
        return (not wanted.category or wanted.category == (doc[CATEGORY] or 'general'))
            and (not wanted.workspace_id or wanted.workspace_id == doc[WORKSPACE])
            and (not wanted.created_by or wanted.created_by == doc[CREATED_BY])
            and (not wanted.parent_job_id or wanted.parent_job_id == doc[PARENT])
            and (not wanted.schedule_id or wanted.schedule_id == doc[SCHEDULE])
            and (not wanted.tag or has(doc[TAGS], wanted.tag))
    end)
end

local function about_time(wanted)
    return function(text)
        local created_at = tonumber(text)
        return (not wanted.since or created_at >= wanted.since)
            and (not wanted['until'] or created_at < wanted['until'])
    end
end

-- What is asked about a job without its contents: the fields to read, and a test for each.
local function questions_of(wanted)
    local fields, tests = {}, {}
    local function ask(field, test)
        fields[#fields + 1], tests[#tests + 1] = field, test
    end
    if wanted.statuses then
        ask('status', remembered(function(status) return has(wanted.statuses, status) end))
    end
    if wanted.queue or wanted.tenant_id or wanted.type then ask('lane', about_lane(wanted)) end
    if wanted.category or wanted.workspace_id or wanted.created_by or wanted.tag
        or wanted.parent_job_id or wanted.schedule_id then
        ask('doc', about_doc(wanted))
    end
    if wanted.lease_owner then
        -- A job that ended has the name of its last owner still.
        ask('status', function(status) return status == 'in_progress' end)
        ask('lease_owner', function(owner) return owner == wanted.lease_owner end)
    end
    if wanted.since or wanted['until'] then ask('created_at', about_time(wanted)) end
    return fields, tests
end

-- Whether the contents are as wanted, and how many bytes they have.
local function fits_inside(wanted, id)
    local found = call('HMGET', job_key(id), 'payload', 'error', 'lane', 'doc')
    if not found[3] then return false, 0 end
    local payload, error_text = found[1] or '', found[2] or ''
    local size = #payload + #error_text
    local type_name, key = parts_of(found[3])[3], doc_of(found[4])[KEY]
    if wanted.texts and not mentions(wanted.texts, id, type_name, key, error_text, payload) then
        return false, size
    end
    return not wanted.payload or holds(payload, wanted.payload), size
end

-- A function that tells of an id whether it is wanted, and how many bytes were read for that.
local function matcher(wanted)
    local fields, tests = questions_of(wanted)
    local contents = wanted.texts or wanted.payload
    return function(id)
        if fields[1] then
            local found = call('HMGET', job_key(id), unpack(fields))
            for place, test in ipairs(tests) do
                if not found[place] or not test(found[place]) then return false, 0 end
            end
        end
        if contents then return fits_inside(wanted, id) end
        return true, 0
    end
end
