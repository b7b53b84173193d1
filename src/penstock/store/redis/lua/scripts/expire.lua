-- Dead-letter waiting jobs past their expiry.
--
-- needs: common edges lines release bury passes
-- reads: followers:…
-- writes: canaries:…, changes:…, children:…, dead, dead:seq, dead:…, depths, depths:…, due,
--   edges:open, edges:…, ended:last:…, ended:own, ended:…, expiring, group:open:…, group:…,
--   groups:open:…, groups:…, inputs:…, job:…, keys, lane:…, lanes, leased, leases:…,
--   letters:open, letters:open:…, lines, metrics:live, metrics:totals, metrics:…, pauses:jobs,
--   room, started, stops:…, wake
-- ARGV[4]  how many at most
-- answers  their ids

despite_full_memory()
local ended = expire(tonumber(ARGV[4]))
if next(depth_sums) then finish() end
return ended
