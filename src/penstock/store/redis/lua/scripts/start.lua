-- Mark prefetched leases as started.
--
-- needs: common
-- writes: depths, depths:…, job:…, leased, metrics:live, metrics:totals, metrics:…, room, started
-- ARGV[4]  the owner
-- ARGV[5]… id and fence of each lease
-- answers  how many were marked

despite_full_memory()
local owner, marked = ARGV[4], 0
for first = 5, #ARGV, 2 do
    local key = job_key(ARGV[first])
    local found = redis.call('HMGET', key, 'status', 'fence', 'lease_owner', 'started_at', 'lane')
    if found[1] == 'in_progress' and found[2] == ARGV[first + 1] and found[3] == owner
        and (found[4] or '') == '' then
        redis.call('HSET', key, 'started_at', NOW)
        count_lease(found[5], owner, 0, 1)
        marked = marked + 1
    end
end
write_counts()
return marked
