-- The edges of a job in both directions, the open ones first.
--
-- needs: common edges linked
-- reads: children:…, edges:…, job:…
-- ARGV[4] the job
-- ARGV[5] how many are wanted in each direction
-- answers {parents, children}, see linked.lua

local limit = tonumber(ARGV[5])
return {parents_of_job(ARGV[4], limit, false), children_of_job(ARGV[4], limit)}
