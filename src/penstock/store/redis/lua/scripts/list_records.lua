-- Records of a kind, by name. Looks at a bounded number of them; Python asks on from there.
--
-- needs: common records
-- reads: records, records:names
-- ARGV[4] the kind
-- ARGV[5] the name to continue after, or ''
-- ARGV[6] the name that the last look got to, or '' for the first look
-- ARGV[7] how many are wanted
-- answers {the name to continue after, or '' when there are no more; the records}

local LOOKS = 1000
local limit = tonumber(ARGV[7])
local after = record_field(ARGV[4], ARGV[6] ~= '' and ARGV[6] or ARGV[5])
-- No name begins with the byte 255, which UTF-8 does not have.
local fields = redis.call('ZRANGEBYLEX', PREFIX .. 'records:names', '(' .. after,
    '(' .. record_field(ARGV[4], '\255'), 'LIMIT', 0, LOOKS)
local found, last = {}, ''
for _, field in ipairs(fields) do
    if #found == limit then return {last, found} end
    found[#found + 1] = record(field)
    last = string.match(field, '\n(.*)$')
end
return {#fields == LOOKS and last or '', found}
