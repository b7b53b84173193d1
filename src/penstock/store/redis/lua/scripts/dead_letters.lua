-- A page of dead letters, newest first. Looks at a bounded number of them; Python asks on from
-- there.
--
-- needs: common letters
-- reads: dead, dead:…, what ARGV names
-- ARGV[4] the wanted fields as a JSON object: type, tenant_id, resolution, fingerprint,
--         canary_of
-- ARGV[5] the zset to look through: dead or one of letter_lists.lua
-- ARGV[6] the job's id to continue after, or ''
-- ARGV[7] the number to continue below, or '' for the first look
-- ARGV[8] how many are wanted
-- answers {the number to continue below, or '' when there are no more; a letter of each}

local LOOKS = 500
local wanted, limit = cjson.decode(ARGV[4]), tonumber(ARGV[8])

local below = '+inf'
if ARGV[7] ~= '' then
    below = '(' .. ARGV[7]
elseif ARGV[6] ~= '' then
    local seq = redis.call('ZSCORE', PREFIX .. 'dead', ARGV[6])
    if not seq then return {'', {}} end
    below = '(' .. seq
end

local function fits(id)
    local found = redis.call('HMGET', PREFIX .. 'dead:' .. id,
        'resolution', 'fingerprint', 'canary_of', 'lane')
    if not found[1] then return false end
    if wanted.resolution and wanted.resolution ~= found[1] then return false end
    if wanted.fingerprint and wanted.fingerprint ~= found[2] then return false end
    if wanted.canary_of and wanted.canary_of ~= found[3] then return false end
    local lane = parts_of(found[4])
    if wanted.tenant_id and wanted.tenant_id ~= lane[2] then return false end
    return not wanted.type or wanted.type == lane[3]
end

local found, last = {}, ''
local ids = redis.call('ZREVRANGEBYSCORE', PREFIX .. ARGV[5], below, '-inf', 'WITHSCORES',
    'LIMIT', 0, LOOKS)
for place = 1, #ids, 2 do
    if #found == limit then return {last, found} end
    if fits(ids[place]) then found[#found + 1] = letter(ids[place]) end
    last = ids[place + 1]
end
return {#ids == 2 * LOOKS and last or '', found}
