-- The jobs of one status that `prune` would delete, oldest first.
--
-- needs: common past
-- reads: ended:own, ended:…
-- ARGV[4]  the status
-- ARGV[5]  for how many milliseconds they are kept
-- ARGV[6]  how many to answer at most
-- ARGV[7]… ids to spare
-- answers their ids

local spared = {}
for place = 7, #ARGV do spared[ARGV[place]] = true end
return past_retention(ARGV[4], tonumber(ARGV[5]), tonumber(ARGV[6]), spared)
