-- Where dead letters are found: those that are open, those of one group, and its canaries.
-- needs: common
--
-- A letter is open while it is neither resolved nor ignored. A group is TYPE \n FINGERPRINT, and
-- stands among those of all tenants (`*`) and of one (`=TENANT`).

local OPEN = {pending = true, investigating = true}
local known_lists, changed = {}, {}

-- {open = keys that list what is open, all = keys that list everything, group, scopes}
local function lists_of(lane, fingerprint)
    local name = lane .. '\n' .. fingerprint
    local lists = known_lists[name]
    if not lists then
        local parts = parts_of(lane)
        local group, all, tenant = parts[3] .. '\n' .. fingerprint, '*', '=' .. parts[2]
        lists = {
            open = {
                PREFIX .. 'letters:open', PREFIX .. 'letters:open:' .. parts[3],
                PREFIX .. 'group:open:' .. all .. '\n' .. group,
                PREFIX .. 'group:open:' .. tenant .. '\n' .. group,
            },
            all = {
                PREFIX .. 'group:' .. all .. '\n' .. group,
                PREFIX .. 'group:' .. tenant .. '\n' .. group,
            },
            group = group, scopes = {all, tenant},
        }
        known_lists[name] = lists
    end
    changed[lists] = true
    return lists
end

-- The lists of a letter, its resolution and the list of canaries it is in; nil without a letter.
local function listing(id)
    local found = redis.call('HMGET', PREFIX .. 'dead:' .. id, 'lane', 'fingerprint', 'resolution',
        'canary_of')
    if not found[1] then return nil end
    local canaries = found[4] and found[4] ~= '' and PREFIX .. 'canaries:' .. found[4]
    return lists_of(found[1], found[2] or ''), found[3], canaries
end

-- Lists a letter that has got a number in `dead`.
local function list_letter(id, death)
    local lists, resolution, canaries = listing(id)
    for _, key in ipairs(lists.all) do call('ZADD', key, death, id) end
    if canaries then call('ZADD', canaries, death, id) end
    if OPEN[resolution] then
        for _, key in ipairs(lists.open) do call('ZADD', key, death, id) end
    end
end

-- Takes a letter off all lists, before its fields change or go.
local function unlist_letter(id)
    local lists, resolution, canaries = listing(id)
    if not lists then return end
    for _, key in ipairs(lists.all) do call('ZREM', key, id) end
    if canaries then call('ZREM', canaries, id) end
    if OPEN[resolution] then
        for _, key in ipairs(lists.open) do call('ZREM', key, id) end
    end
end

-- Lists a letter among those that are open, or no longer, before its resolution changes.
local function relist_letter(id, resolution)
    local lists, before = listing(id)
    if OPEN[resolution] and not OPEN[before] then
        local death = call('ZSCORE', PREFIX .. 'dead', id)
        for _, key in ipairs(lists.open) do call('ZADD', key, death, id) end
    elseif OPEN[before] and not OPEN[resolution] then
        for _, key in ipairs(lists.open) do call('ZREM', key, id) end
    end
end

-- Orders the groups of those letters by their newest, once they all are listed.
local function order_groups()
    for lists in pairs(changed) do
        for place, scope in ipairs(lists.scopes) do
            local newest = call('ZREVRANGE', lists.all[place], 0, 0, 'WITHSCORES')[2]
            local is_open = call('EXISTS', lists.open[place + 2]) == 1
            for key, stands in pairs({['groups:'] = newest ~= nil, ['groups:open:'] = is_open}) do
                if stands then
                    call('ZADD', PREFIX .. key .. scope, newest, lists.group)
                else
                    call('ZREM', PREFIX .. key .. scope, lists.group)
                end
            end
        end
    end
    changed = {}
end

at_the_end[#at_the_end + 1] = order_groups
