-- Create or replace a record, if it still has the revision that is named.
--
-- needs: common records
-- writes: records, records:expiring, records:names, room
-- ARGV[4] the kind
-- ARGV[5] the name
-- ARGV[6] the document
-- ARGV[7] the revision it must have, 0 for none at all, or '' for any
-- ARGV[8] for how many milliseconds it stays, or '' for ever
-- answers the record, or nothing when it has another revision

-- Somebody must be able to log in, and to make room.
despite_full_memory()
local field = record_field(ARGV[4], ARGV[5])
local known = record(field)
local revision = known and known[2] or '0'
if ARGV[7] ~= '' and ARGV[7] ~= revision then return nil end
local expires_at = ARGV[8] == '' and '-' or int(now + tonumber(ARGV[8]))
local next_revision = int(tonumber(revision) + 1)
write_record(field, next_revision, expires_at, ARGV[6])
return {ARGV[5], next_revision, NOW, expires_at, ARGV[6]}
