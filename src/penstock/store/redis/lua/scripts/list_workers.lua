-- All known workers, the freshest first.
--
-- needs: common
-- reads: workers, workers:seen, workers:since
-- answers {now; for each JSON, started_at, heartbeat_at}

local found = {}
local seen = redis.call('ZREVRANGE', PREFIX .. 'workers:seen', 0, -1, 'WITHSCORES')
for place = 1, #seen, 2 do
    local owner = seen[place]
    local told = redis.call('HGET', PREFIX .. 'workers', owner)
    if told then
        local since = redis.call('HGET', PREFIX .. 'workers:since', owner)
        found[#found + 1] = {told, since or seen[place + 1], seen[place + 1]}
    end
end
return {NOW, found}
