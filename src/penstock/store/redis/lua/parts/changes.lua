-- Telling followers what becomes of jobs.
-- needs: ground

local names_by_status = nil

-- The followers of every status, looked up once, when the first job changes.
local function find_followers()
    local found, followers = {}, redis.call('HGETALL', PREFIX .. 'followers')
    for place = 1, #followers, 2 do
        for _, status in ipairs(cjson.decode(followers[place + 1])) do
            found[status] = found[status] or {}
            table.insert(found[status], followers[place])
        end
    end
    return found
end

-- A job has come to a status: whatever writes a new one into its hash says so.
local function record_change(id, lane, status, fence)
    names_by_status = names_by_status or find_followers()
    local names = names_by_status[status]
    if not names then return end
    for _, name in ipairs(names) do
        redis.call('XADD', PREFIX .. 'changes:' .. name, '*', 'job_id', id, 'lane', lane,
            'status', status, 'fence', fence, 'at', NOW)
    end
end
