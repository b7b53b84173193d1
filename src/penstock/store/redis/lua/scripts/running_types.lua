-- How many jobs of every lane are under a lease.
--
-- needs: common leased
-- reads: leased, started
-- answers {lane, jobs} each; a lane once for every owner

local found = {}
for _, row in ipairs(leased_rows()) do
    found[#found + 1] = {row.lane, row.leases}
end
return found
