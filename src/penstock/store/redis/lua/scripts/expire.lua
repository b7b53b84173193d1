-- Dead-letter waiting jobs past their expiry.
--
-- needs: common edges lines release bury passes
-- ARGV[4]  how many at most
-- answers  their ids

despite_full_memory()
local ended = expire(tonumber(ARGV[4]))
if next(depth_sums) then finish() end
return ended
