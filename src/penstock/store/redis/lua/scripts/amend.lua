-- Give an ended job other arguments, for its next requeue.
--
-- needs: common
-- writes: depths, depths:…, job:…, leased, metrics:live, metrics:totals, metrics:…, started, wake
-- ARGV[4]  the job's id
-- ARGV[5]  its new payload
-- answers 1

local MAY_REQUEUE = {from requeue}

local status = redis.call('HGET', job_key(ARGV[4]), 'status')
if not status then return {'refused', 'JobNotFound', ARGV[4]} end
if not MAY_REQUEUE[status] then
    return {'refused', 'IllegalTransition', status, 'amend', ARGV[4]}
end
redis.call('HSET', job_key(ARGV[4]), 'payload', ARGV[5])
finish()
return 1
