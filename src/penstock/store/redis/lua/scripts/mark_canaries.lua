-- Remember which jobs are replayed ahead of their group of dead letters.
--
-- needs: common letter_lists
-- reads: dead
-- writes: canaries:…, dead:…, depths, depths:…, group:open:…, group:…, groups:open:…, groups:…,
--   leased, letters:open, letters:open:…, metrics:live, metrics:totals, metrics:…, started
-- ARGV[4]  the group, or '' to forget it
-- ARGV[5]… ids
-- answers how many there are

local marked = 0
for place = 5, #ARGV do
    local key = PREFIX .. 'dead:' .. ARGV[place]
    if redis.call('EXISTS', key) == 1 then
        unlist_letter(ARGV[place])
        redis.call('HSET', key, 'canary_of', ARGV[4])
        list_letter(ARGV[place], redis.call('ZSCORE', PREFIX .. 'dead', ARGV[place]))
        marked = marked + 1
    end
end
write_counts()
return marked
