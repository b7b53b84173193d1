-- Delete jobs of one status that ended before their retention, oldest first.
--
-- needs: common edges deletes past
-- writes: canaries:…, children:…, dead, dead:…, depths, depths:…, edges:open, edges:…,
--   ended:last:…, ended:own, ended:…, group:open:…, group:…, groups:open:…, groups:…, inputs:…,
--   job:…, jobs, leased, letters:open, letters:open:…, logs:…, metrics:live, metrics:totals,
--   metrics:…, of_parent:…, of_schedule:…, started
-- ARGV[4]  the status
-- ARGV[5]  for how many milliseconds they are kept
-- ARGV[6]  how many to delete at most
-- ARGV[7]… ids to spare
-- answers how many were deleted

local spared = {}
for place = 7, #ARGV do spared[ARGV[place]] = true end

local old = past_retention(ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), spared)
delete_jobs(old, ARGV[4])
write_counts()
return #old
