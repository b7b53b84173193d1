-- What groups of dead letters are made from, newest first; a bounded number at a time.
--
-- needs: common
-- ARGV[4] the number to continue below, or '' for the first look
-- answers {the number to continue below, or '' when there are no more; for each its id, lane,
--          fingerprint, error, error_code, resolution, created_at}

local LOOKS = 1000
local below = ARGV[4] == '' and '+inf' or '(' .. ARGV[4]
local ids = redis.call('ZREVRANGEBYSCORE', PREFIX .. 'dead', below, '-inf', 'WITHSCORES',
    'LIMIT', 0, LOOKS)
local found = {}
for place = 1, #ids, 2 do
    local row = redis.call('HMGET', PREFIX .. 'dead:' .. ids[place], 'lane', 'fingerprint',
        'error', 'error_code', 'resolution', 'created_at')
    if row[1] then found[#found + 1] = {ids[place], unpack(row)} end
end
return {#ids == 2 * LOOKS and ids[#ids] or '', found}
