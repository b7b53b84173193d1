-- A job as readers see it. Read by records.py, which knows the same order of fields.
-- needs: common

local PICTURED = {
    'status', 'lane', 'doc', 'priority', 'payload', 'result', 'error', 'error_details',
    'attempts', 'snoozes', 'rescues', 'fence', 'timeout_ms', 'scheduled_at', 'expires_at',
    'lease_owner', 'cancel_requested_at', 'progress_percent', 'progress_message', 'checkpoint',
    'waiting_on', 'created_at', 'updated_at', 'queued_at', 'started_at', 'completed_at',
    'failed_at', 'progress',
}

-- Fills in what the last execution of a completed job tells.
local function fill_in(id, found)
    local last = redis.call('HGET', job_key(id), 'x' .. (found[12] or ''))
    if not last then return end
    local ran = cjson.decode(last)
    local started_at, completed_at = int(ran[4]), int(ran[1])
    found[9] = int((tonumber(found[9]) or 0) + 1)
    found[23], found[25], found[26] = completed_at, started_at, completed_at
end

-- {id, lease_until by the wall clock, the fields above}, or nil for an unknown id.
local function picture(id)
    local found = redis.call('HMGET', job_key(id), unpack(PICTURED))
    if not found[1] then return nil end
    local lease_until = false
    if found[1] == 'in_progress' and found[16] then
        local lease = redis.call('ZSCORE', PREFIX .. 'leases:' .. found[16], id)
        lease_until = lease and int(tonumber(lease) + now - monotonic)
    elseif found[1] == 'completed' then
        found[16] = false
        if not found[26] then fill_in(id, found) end
    end
    return {id, lease_until, unpack(found)}
end
