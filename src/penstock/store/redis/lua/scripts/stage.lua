-- Queue waiting jobs that fell due.
--
-- needs: common edges lines release bury passes
-- reads: followers:…, jobs
-- writes: changes:…, children:…, dead, depths, depths:…, due, edges:open, edges:…, ended:last:…,
--   ended:own, ended:…, expiring, groups:open:…, groups:…, job:…, lane:…, lanes, leased,
--   leases:…, lines, metrics:live, metrics:totals, metrics:…, room, started, stops:…, wake
-- ARGV[4]  how many at most
-- answers  how many were queued

despite_full_memory()
local queued = stage(tonumber(ARGV[4]))
if next(depth_sums) then finish() end
return queued
