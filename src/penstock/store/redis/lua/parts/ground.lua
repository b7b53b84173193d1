-- The prefix of the keys, the clock, and commands with many arguments.

local PREFIX = KEYS[1]
-- For the scripts that do much for every job: a local is found quicker than a field.
local call = redis.call
local FINE_MS = 10000
local PRIORITY_STEP_MS = 3600000
local DEFAULT_PRIORITY = 5

local function int(number)
    return string.format('%.0f', number)
end

local now, monotonic = tonumber(ARGV[1]), tonumber(ARGV[2])
if not now or not monotonic then
    local time = redis.call('TIME')
    local server = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
    now, monotonic = now or server, monotonic or server
end
local NOW, MONOTONIC = int(now), int(monotonic)

-- Runs a command with many arguments in pieces that fit on Lua's stack; `step` of them belong
-- together. Returns the sum of the answers, where they are numbers.
local function many(command, key, arguments, step)
    local total, size = 0, 1000 * (step or 1)
    for first = 1, #arguments, size do
        local last = math.min(first + size - 1, #arguments)
        local answer = redis.call(command, key, unpack(arguments, first, last))
        if type(answer) == 'number' then total = total + answer end
    end
    return total
end

local function job_key(id)
    return PREFIX .. 'job:' .. id
end
