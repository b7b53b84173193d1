-- Write progress, checkpoints and logs of running executions.
--
-- needs: common
-- writes: depths, depths:…, job:…, leased, logs:…, metrics:live, metrics:totals, metrics:…, room,
--   started, wake
-- ARGV[4]  the owner
-- ARGV[5]  JSON: {id, fence, percent, message, document, checkpoint, logs} each; percent is text,
--          and logs are JSON texts [at, fence, level, message]
-- answers  the ids whose fence was stale

despite_full_memory()
local owner, stale = ARGV[4], {}
local NAMES = {
    percent = 'progress_percent', message = 'progress_message', document = 'progress',
    checkpoint = 'checkpoint',
}

local function fields_of(report)
    local fields = {'updated_at', NOW}
    for name, field in pairs(NAMES) do
        if report[name] and report[name] ~= cjson.null then
            fields[#fields + 1] = field
            fields[#fields + 1] = report[name]
        end
    end
    return fields
end

for _, report in ipairs(cjson.decode(ARGV[5])) do
    local key = job_key(report.id)
    local found = redis.call('HMGET', key, 'status', 'fence', 'lease_owner')
    if found[1] == 'in_progress' and found[2] == int(report.fence) and found[3] == owner then
        -- A number takes the place of an object.
        if report.percent ~= cjson.null and report.document == cjson.null then
            redis.call('HDEL', key, 'progress')
        end
        redis.call('HSET', key, unpack(fields_of(report)))
        if #report.logs > 0 then many('RPUSH', PREFIX .. 'logs:' .. report.id, report.logs) end
    else
        stale[#stale + 1] = report.id
    end
end
finish()
return stale
