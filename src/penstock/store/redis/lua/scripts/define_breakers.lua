-- Set up breakers; those that exist keep their position, and types of other applications.
--
-- needs: common breakers
-- writes: breakers, breakers:state, depths, depths:…, leased, metrics:live, metrics:totals,
--   metrics:…, started, wake
-- ARGV[4]  breakers as JSON: [name, types, failures, cool_down_ms] each
-- ARGV[5]  the types that the caller knows, as JSON
-- answers 1

local known_types, named, order = {}, {}, {}
for _, known in ipairs(cjson.decode(ARGV[5])) do known_types[known] = true end
for _, breaker in ipairs(cjson.decode(ARGV[4])) do
    if not named[breaker[1]] then order[#order + 1] = breaker[1] end
    named[breaker[1]] = breaker
end

-- cjson writes an empty list as an object.
local function write_definition(name, types, failures, cool_down_ms)
    local listed = #types > 0 and cjson.encode(types) or '[]'
    local terms = {listed, int(failures), int(cool_down_ms)}
    redis.call('HSET', PREFIX .. 'breakers', name, '[' .. table.concat(terms, ',') .. ']')
end

for _, breaker in ipairs(read_breakers()) do
    local types, chosen, seen = {}, named[breaker.name], {}
    local function add(guarded)
        if not seen[guarded] then types[#types + 1] = guarded end
        seen[guarded] = true
    end
    for _, guarded in ipairs(breaker.types) do
        if not known_types[guarded] then add(guarded) end
    end
    for _, guarded in ipairs(chosen and chosen[2] or {}) do add(guarded) end
    if #types > 0 or chosen then
        local terms = chosen or {nil, nil, breaker.failures, breaker.cool_down_ms}
        write_definition(breaker.name, types, terms[3], terms[4])
    else
        redis.call('HDEL', PREFIX .. 'breakers', breaker.name)
        redis.call('HDEL', PREFIX .. 'breakers:state', breaker.name)
    end
    named[breaker.name] = nil
end
for _, name in ipairs(order) do
    if named[name] then write_definition(unpack(named[name])) end
end
finish()
return 1
