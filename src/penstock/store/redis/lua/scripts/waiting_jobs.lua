-- A page of all jobs that have not ended and do not run, in the order they were made. Looks at a
-- bounded number of jobs; Python asks on from there.
--
-- needs: common pictures
-- reads: job:…, jobs, leases:…
-- ARGV[4] the id to continue after, or ''
-- ARGV[5] the seq to continue above, or '' for the first look
-- ARGV[6] how many are wanted
-- answers {the seq to continue above, or '' when there are no more; a picture of each}

local LOOKS = 2000
local WAITING = {pending = true, queued = true, failed = true, paused = true}
local limit = tonumber(ARGV[6])

local above = ARGV[5]
if above == '' and ARGV[4] ~= '' then
    above = redis.call('ZSCORE', PREFIX .. 'jobs', ARGV[4]) or ''
end
above = above == '' and '-inf' or '(' .. above

local found, last = {}, ''
local ids = redis.call('ZRANGEBYSCORE', PREFIX .. 'jobs', above, '+inf', 'WITHSCORES',
    'LIMIT', 0, LOOKS)
for place = 1, #ids, 2 do
    if #found == limit then return {last, found} end
    if WAITING[redis.call('HGET', job_key(ids[place]), 'status')] then
        found[#found + 1] = picture(ids[place])
    end
    last = ids[place + 1]
end
return {#ids == 2 * LOOKS and last or '', found}
