-- Deleting ended jobs and all that hangs on them. Keys that outlive pruning stay.
-- needs: common edges letter_lists

local PARENT, SCHEDULE = 10, 11

local function unlink(keys)
    for first = 1, #keys, 1000 do
        redis.call('UNLINK', unpack(keys, first, math.min(first + 999, #keys)))
    end
end

local function delete_letters(ids)
    local keys = {}
    for place, id in ipairs(ids) do
        keys[place] = PREFIX .. 'dead:' .. id
        unlist_letter(id)
    end
    unlink(keys)
    many('ZREM', PREFIX .. 'dead', ids)
end

local function forget_origin(id, doc)
    local about = cjson.decode(doc)
    if type(about[PARENT]) == 'string' then
        redis.call('ZREM', PREFIX .. 'of_parent:' .. about[PARENT], id)
    end
    if type(about[SCHEDULE]) == 'string' then
        redis.call('ZREM', PREFIX .. 'of_schedule:' .. about[SCHEDULE], id)
    end
end

-- Deletes jobs that ended alike. A doc with few fields names neither a parent nor a schedule.
local function delete_jobs(ids, status)
    if #ids == 0 then return end
    local keys = {}
    for _, id in ipairs(ids) do
        local found = redis.call('HMGET', job_key(id), 'doc', 'lane', 'keep')
        local doc = found[1] or ''
        if found[3] then forget_own(id, found[2], status, found[3]) end
        if select(2, string.gsub(doc, ',', '')) >= PARENT - 1 then forget_origin(id, doc) end
        if redis.call('EXISTS', PREFIX .. 'edges:' .. id) == 1 then drop_edges_of(id) end
        keys[#keys + 1] = job_key(id)
        keys[#keys + 1] = PREFIX .. 'logs:' .. id
    end
    unlink(keys)
    many('ZREM', PREFIX .. 'jobs', ids)
    many('ZREM', PREFIX .. 'ended:' .. status, ids)
    if redis.call('EXISTS', PREFIX .. 'dead') == 1 then delete_letters(ids) end
end
