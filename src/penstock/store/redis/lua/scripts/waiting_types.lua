-- How many jobs are queued in every lane.
--
-- needs: common
-- reads: lane:…, lanes
-- answers {lane, jobs} each

local found = {}
for _, lane in ipairs(all_lanes()) do
    local depth = redis.call('ZCARD', lane_key(lane))
    if depth > 0 then found[#found + 1] = {lane, depth} end
end
return found
