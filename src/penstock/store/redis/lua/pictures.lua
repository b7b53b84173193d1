-- A job as readers see it. Read by records.py, which knows the same order of fields.
-- needs: common

local PICTURED = {
    'status', 'lane', 'doc', 'priority', 'payload', 'result', 'error', 'error_details',
    'attempts', 'snoozes', 'rescues', 'fence', 'timeout_ms', 'scheduled_at', 'expires_at',
    'lease_owner', 'cancel_requested_at', 'progress_percent', 'progress_message', 'checkpoint',
    'waiting_on', 'created_at', 'updated_at', 'queued_at', 'started_at', 'completed_at',
    'failed_at',
}

-- {id, lease_until by the wall clock, the fields above}, or nil for an unknown id.
local function picture(id)
    local found = redis.call('HMGET', job_key(id), unpack(PICTURED))
    if not found[1] then return nil end
    local lease_until = false
    if found[1] == 'in_progress' and found[16] then
        local lease = redis.call('ZSCORE', PREFIX .. 'leases:' .. found[16], id)
        lease_until = lease and int(tonumber(lease) + now - monotonic)
    end
    return {id, lease_until, unpack(found)}
end
