-- Forget jobs whose rows have left the outbox: nobody delivers them again.
--
-- needs: common
-- writes: delivered
-- ARGV[4]… the ids
-- answers how many

local ids = {}
for place = 4, #ARGV do ids[#ids + 1] = ARGV[place] end
return many('SREM', PREFIX .. 'delivered', ids)
