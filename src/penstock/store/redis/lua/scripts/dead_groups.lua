-- A page of groups of dead letters, that of the newest letter first. Looks at a bounded number of
-- them; Python asks on from there.
--
-- needs: common groups
-- reads: dead, dead:…, group:open:…, group:…, what ARGV names
-- ARGV[4] the zset to look through: groups:SCOPE or groups:open:SCOPE
-- ARGV[5] the scope
-- ARGV[6] the type they must have, or ''
-- ARGV[7] the job's id whose letter is the newest of the group to continue after, or ''
-- ARGV[8] the number to continue below, or '' for the first look
-- ARGV[9] how many are wanted
-- answers {the number to continue below, or '' when there are no more; each group}

local LOOKS, GROUPS = 1000, 100
local below, most = '+inf', math.min(GROUPS, tonumber(ARGV[9]))
if ARGV[8] ~= '' then
    below = '(' .. ARGV[8]
elseif ARGV[7] ~= '' then
    local death = redis.call('ZSCORE', PREFIX .. 'dead', ARGV[7])
    if not death then return {'', {}} end
    below = '(' .. death
end

local beginning = ARGV[6] .. '\n'
local found, last = {}, ''
local names = redis.call('ZREVRANGEBYSCORE', PREFIX .. ARGV[4], below, '-inf', 'WITHSCORES',
    'LIMIT', 0, LOOKS)
for place = 1, #names, 2 do
    if #found == most then return {last, found} end
    if ARGV[6] == '' or string.sub(names[place], 1, #beginning) == beginning then
        found[#found + 1] = group(ARGV[5], names[place])
    end
    last = names[place + 1]
end
return {#names == 2 * LOOKS and last or '', found}
