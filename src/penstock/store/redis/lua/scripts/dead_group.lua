-- One group of dead letters.
--
-- needs: common groups
-- reads: dead:…, group:open:…, group:…
-- ARGV[4] the scope
-- ARGV[5] TYPE \n FINGERPRINT
-- answers the group, or nothing

return group(ARGV[4], ARGV[5])
