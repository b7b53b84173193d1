-- Jobs by their ids.
--
-- needs: common pictures
-- reads: job:…, leases:…
-- ARGV[4]… ids
-- answers a picture of each that exists, in the order asked

local found = {}
for place = 4, #ARGV do found[#found + 1] = picture(ARGV[place]) end
return found
