-- Record where a person stands with dead letters.
--
-- needs: common letter_lists
-- reads: dead
-- writes: canaries:…, dead:…, depths, depths:…, group:open:…, group:…, groups:open:…, groups:…,
--   leased, letters:open, letters:open:…, metrics:live, metrics:totals, metrics:…, room, started,
--   wake
-- ARGV[4]  the resolution
-- ARGV[5]  notes, or '' to leave earlier ones
-- ARGV[6]  who it is, or ''
-- ARGV[7]… ids
-- answers the ids that exist

despite_full_memory()
local opens = OPEN[ARGV[4]]
local found = {}
for place = 7, #ARGV do
    local id = ARGV[place]
    local key = PREFIX .. 'dead:' .. id
    if redis.call('EXISTS', key) == 1 then
        relist_letter(id, ARGV[4])
        local resolved_at = opens and '' or NOW
        redis.call('HSET', key, 'resolution', ARGV[4], 'resolved_by', ARGV[6],
            'resolved_at', resolved_at)
        if ARGV[5] ~= '' then redis.call('HSET', key, 'notes', ARGV[5]) end
        found[#found + 1] = id
    end
end
if #found > 0 then finish() end
return found
