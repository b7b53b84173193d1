-- A dead letter as readers see it. Read by dead.py, which knows the same order of fields.
-- needs: common

local WRITTEN = {
    'lane', 'doc', 'payload', 'checkpoint', 'priority', 'scheduled_at', 'made_at', 'reason',
    'error', 'error_code', 'fingerprint', 'attempts', 'rescues', 'executions', 'resolution',
    'notes', 'resolved_by', 'resolved_at', 'created_at', 'canary_of',
}

-- {id, the fields above}, or nil for a job that has none.
local function letter(id)
    local found = redis.call('HMGET', PREFIX .. 'dead:' .. id, unpack(WRITTEN))
    if not found[1] then return nil end
    return {id, unpack(found)}
end
