-- Delete a record.
--
-- needs: common records
-- writes: records, records:expiring, records:names
-- ARGV[4] the kind
-- ARGV[5] the name
-- answers 1, or 0 where there was none

local field = record_field(ARGV[4], ARGV[5])
local known = record(field)
delete_records({field})
return known and 1 or 0
