-- One record.
--
-- needs: common records
-- reads: records
-- ARGV[4] the kind
-- ARGV[5] the name
-- answers the record, or nothing

return record(record_field(ARGV[4], ARGV[5]))
