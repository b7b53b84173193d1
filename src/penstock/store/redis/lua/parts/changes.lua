-- Telling followers what becomes of jobs.
-- needs: ground

local known_followers = {}

-- A job has come to a status: whatever writes a new one into its hash says so. The followers of a
-- status are looked up once.
local function record_change(id, lane, status, fence)
    local names = known_followers[status]
    if not names then
        names = redis.call('SMEMBERS', PREFIX .. 'followers:' .. status)
        known_followers[status] = names
    end
    for _, name in ipairs(names) do
        -- In one field: five of them would take twice as long.
        redis.call('XADD', PREFIX .. 'changes:' .. name, '*', 'change',
            status .. ' ' .. fence .. ' ' .. NOW .. ' ' .. lane .. '\n' .. id)
    end
end
