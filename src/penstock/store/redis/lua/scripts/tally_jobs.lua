-- Count some jobs and what hangs on them, in the order they were made.
-- needs: common
-- reads: edges:…, job:…, jobs, logs:…
-- ARGV[4]  the seq to count after
-- ARGV[5]  how many jobs at most
-- answers  {seq of the last one or '', executions, logs, dependencies, sum of fences, sum of
--          attempts, status, count, …}

local found = redis.call('ZRANGEBYSCORE', PREFIX .. 'jobs', '(' .. ARGV[4], '+inf', 'WITHSCORES',
    'LIMIT', 0, ARGV[5])
local executions, logs, edges, fences, attempts, statuses = 0, 0, 0, 0, 0, {}
for place = 1, #found, 2 do
    local id = found[place]
    local about = redis.call('HMGET', job_key(id), 'status', 'fence', 'attempts',
        'completed_at')
    local status = about[1] or 'unknown'
    statuses[status] = (statuses[status] or 0) + 1
    fences = fences + (tonumber(about[2]) or 0)
    attempts = attempts + (tonumber(about[3]) or 0)
    if status == 'completed' and not about[4] then attempts = attempts + 1 end
    for _, field in ipairs(redis.call('HKEYS', job_key(id))) do
        if string.find(field, '^x%d+$') then executions = executions + 1 end
    end
    logs = logs + redis.call('LLEN', PREFIX .. 'logs:' .. id)
    edges = edges + redis.call('HLEN', PREFIX .. 'edges:' .. id)
end
local answer = {found[#found] or '', executions, logs, edges, int(fences), int(attempts)}
for status, count in pairs(statuses) do
    answer[#answer + 1] = status
    answer[#answer + 1] = count
end
return answer
