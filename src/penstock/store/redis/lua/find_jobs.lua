-- A page of jobs, newest first. Looks at a bounded number of them; Python asks on from there.
--
-- needs: common pictures candidates
-- ARGV[4] the wanted fields as a JSON object: status, type, queue, tenant_id, tag, parent_job_id,
--         schedule_id
-- ARGV[5] the id to continue after, or ''
-- ARGV[6] the seq to continue below, or '' for the first look
-- ARGV[7] how many are wanted
-- answers {the seq to continue below, or '' when there are no more; a picture of each}

local LOOKS = 2000
local TAGS, SCHEDULE = 8, 11
local wanted, limit = cjson.decode(ARGV[4]), tonumber(ARGV[7])

local below = ARGV[6]
if below == '' and ARGV[5] ~= '' then
    below = redis.call('ZSCORE', PREFIX .. 'jobs', ARGV[5])
    if not below then return {'', {}} end
end

local function has_tag(doc)
    local tags = cjson.decode(doc)[TAGS]
    if type(tags) ~= 'table' then return false end
    for _, tag in ipairs(tags) do
        if tag == wanted.tag then return true end
    end
    return false
end

local function fits(id)
    local found = redis.call('HMGET', job_key(id), 'status', 'lane', 'doc')
    if not found[1] then return false end
    if wanted.status and wanted.status ~= found[1] then return false end
    local lane = parts_of(found[2])
    if wanted.queue and wanted.queue ~= lane[1] then return false end
    if wanted.tenant_id and wanted.tenant_id ~= lane[2] then return false end
    if wanted.type and wanted.type ~= lane[3] then return false end
    if wanted.schedule_id and cjson.decode(found[3])[SCHEDULE] ~= wanted.schedule_id then
        return false
    end
    return not wanted.tag or has_tag(found[3])
end

-- {id, seq, …} to look at, and whether there may be more after them.
local function looked_at()
    local index = 'jobs'
    if wanted.parent_job_id then
        index = 'of_parent:' .. wanted.parent_job_id
    elseif wanted.schedule_id then
        index = 'of_schedule:' .. wanted.schedule_id
    elseif wanted.status then
        local ids = candidates(wanted.status)
        if ids then return newest_first(ids, tonumber(below) or math.huge), false end
    end
    local highest = below == '' and '+inf' or '(' .. below
    local rows = redis.call('ZREVRANGEBYSCORE', PREFIX .. index, highest, '-inf', 'WITHSCORES',
        'LIMIT', 0, LOOKS)
    return rows, #rows == 2 * LOOKS
end

local found, last = {}, ''
local rows, more = looked_at()
for place = 1, #rows, 2 do
    if #found == limit then return {last, found} end
    if fits(rows[place]) then found[#found + 1] = picture(rows[place]) end
    last = rows[place + 1]
end
return {more and last or '', found}
