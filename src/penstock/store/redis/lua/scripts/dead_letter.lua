-- One dead letter.
--
-- needs: common letters
-- reads: dead:…
-- ARGV[4] the job's id
-- answers the letter, or nothing

return letter(ARGV[4])
