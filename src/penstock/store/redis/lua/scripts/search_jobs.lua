-- Jobs that are looked for, newest first. Looks at a bounded number of them and of their bytes;
-- Python asks on from there.
--
-- needs: common pictures candidates matching places
-- reads: depths, ended:…, job:…, jobs, lane:…, lanes, leases:…, of_parent:…, of_schedule:…,
--   owners
-- ARGV[4] what is wanted as a JSON object (matching.lua)
-- ARGV[5] the id to continue after, or ''; of a job that is gone, its place is
-- ARGV[6] the seq to continue below, or '' for the first look
-- ARGV[7] how many are wanted
-- ARGV[8] how many to look at
-- ARGV[9] jobs, ids or payloads
-- answers {the seq to continue below, or '' when there are no more; the id looked at last, or '';
--          for each a picture, its id, or its id and payload}

local SOME, MOST_BYTES, MOST_CANDIDATES_IN_ALL = 100, 1000000, 1000
local SLACK_MS = 60000 -- about as much as a clock is set back while jobs are made
local wanted, limit, looks = cjson.decode(ARGV[4]), tonumber(ARGV[7]), tonumber(ARGV[8])

-- Of the cases of letters, Lua knows those of ASCII; Python spells the others out.
for place, text in ipairs(wanted.texts or {}) do wanted.texts[place] = string.lower(text) end

local function begin()
    if ARGV[6] ~= '' then return ARGV[6] end
    if ARGV[5] ~= '' then return seq_of(ARGV[5]) end
    local before = wanted['until']
    if not before then return '' end
    return seq_above(function(id) return made_at(id) < before + SLACK_MS end)
end

-- Ids among which all jobs of the wanted states are, or nil.
local function few()
    if not wanted.statuses then return nil end
    local ids = {}
    for _, status in ipairs(wanted.statuses) do
        local some = candidates(status)
        if not some or #ids + #some > MOST_CANDIDATES_IN_ALL then return nil end
        for _, id in ipairs(some) do ids[#ids + 1] = id end
    end
    return ids
end

local ids = not wanted.parent_job_id and not wanted.schedule_id and few()
local index = wanted.parent_job_id and 'of_parent:' .. wanted.parent_job_id
    or wanted.schedule_id and 'of_schedule:' .. wanted.schedule_id or 'jobs'

-- Some {id, seq, …} to look at below a seq, and whether there may be more after them.
local function below(seq)
    if ids then return newest_first(ids, tonumber(seq) or math.huge), false end
    local highest = seq == '' and '+inf' or '(' .. seq
    local rows = redis.call('ZREVRANGEBYSCORE', PREFIX .. index, highest, '-inf', 'WITHSCORES',
        'LIMIT', 0, SOME)
    return rows, #rows == 2 * SOME
end

local function shown(id)
    if ARGV[9] == 'jobs' then return picture(id) end
    if ARGV[9] == 'ids' then return id end
    return {id, redis.call('HGET', job_key(id), 'payload') or ''}
end

-- Whether no job after this one can be wanted.
local function too_old(id)
    return wanted.since and made_at(id) < wanted.since - SLACK_MS
end

local is_wanted = matcher(wanted)
local found, seq, last, bytes, looked = {}, begin(), '', 0, 0
repeat
    local rows, more = below(seq)
    for place = 1, #rows, 2 do
        if #found == limit or looked == looks or bytes > MOST_BYTES then
            return {too_old(last) and '' or seq, last, found}
        end
        last, seq = rows[place], rows[place + 1]
        local fits, size = is_wanted(last)
        if fits then found[#found + 1] = shown(last) end
        looked, bytes = looked + 1, bytes + size
    end
until not more or too_old(last)
return {'', last, found}
