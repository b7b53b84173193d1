-- Results of parents in a child's payload, the same bytes as model.dependency.with_inputs makes.
--
-- Texts are put together as they are, so that no number is read and written anew.

local ESCAPES = {
    ['"'] = '\\"', ['\\'] = '\\\\', ['\b'] = '\\b', ['\f'] = '\\f', ['\n'] = '\\n', ['\r'] = '\\r',
    ['\t'] = '\\t',
}
local BLANK = {[9] = true, [10] = true, [11] = true, [12] = true, [13] = true, [32] = true}

local function json_string(text)
    return '"' .. text:gsub('[%z\1-\31"\\]', function(char)
        return ESCAPES[char] or string.format('\\u%04x', char:byte())
    end) .. '"'
end

local function without_blanks_after(text, last)
    while BLANK[text:byte(last)] do last = last - 1 end
    return text:sub(1, last)
end

-- Byte order; the comparison of strings that Lua has depends on the server's locale.
local function comes_before(one, other)
    for place = 1, math.min(#one, #other) do
        local a, b = one:byte(place), other:byte(place)
        if a ~= b then return a < b end
    end
    return #one < #other
end

local function after_string(text, at)
    while true do
        at = text:find('["\\]', at + 1)
        if not at then return nil end
        if text:byte(at) == 34 then return at + 1 end
        at = at + 1
    end
end

local function after_value(text, at)
    local char = text:sub(at, at)
    if char == '"' then return after_string(text, at) end
    if char ~= '{' and char ~= '[' then return text:match('^[%w.+-]+()', at) end
    local depth = 0
    while at do
        char = text:sub(at, at)
        if char == '"' then
            at = after_string(text, at)
        else
            depth = depth + ((char == '{' or char == '[') and 1 or -1)
            at = at + 1
            if depth == 0 then return at end
        end
        at = at and text:find('["{}%[%]]', at)
    end
    return nil
end

-- The members of an object as {name, text of the value}, each name once; nil for anything else.
local function members_of(payload)
    local at = payload:match('^%s*{%s*()')
    local members, place_of = {}, {}
    while at and payload:sub(at, at) ~= '}' do
        local name_ends = payload:sub(at, at) == '"' and after_string(payload, at)
        local begins = name_ends and payload:match('^%s*:%s*()', name_ends)
        local ends = begins and after_value(payload, begins)
        if not ends then return nil end
        local name = payload:sub(at + 1, name_ends - 2)
        if name:find('\\', 1, true) then
            local read, value = pcall(cjson.decode, '["' .. name .. '"]')
            if not read then return nil end
            name = value[1]
        end
        place_of[name] = place_of[name] or #members + 1
        members[place_of[name]] = {name, payload:sub(begins, ends - 1)}
        at = payload:match('^%s*,%s*()', ends) or payload:match('^%s*()}', ends)
    end
    return at and members
end

local function without(payload, names)
    local members = members_of(payload)
    local kept, dropped = {}, false
    for _, member in ipairs(members or {}) do
        if names[member[1]] then
            dropped = true
        else
            kept[#kept + 1] = json_string(member[1]) .. ':' .. member[2]
        end
    end
    if not dropped or not pcall(cjson.decode, payload) then return payload end
    return '{' .. table.concat(kept, ',') .. '}'
end

-- A payload with inputs of {argument, position or nil, JSON text} each; what an earlier call put in
-- is replaced.
local function with_inputs(payload, inputs)
    local text_of, order, listed, lists = {}, {}, {}, {}
    for _, input in ipairs(inputs) do
        local argument, position, text = input[1], input[2], input[3]
        if position then
            if not listed[argument] then
                listed[argument] = {}
                lists[#lists + 1] = argument
            end
            table.insert(listed[argument], {position, text})
        else
            if not text_of[argument] then order[#order + 1] = argument end
            text_of[argument] = text
        end
    end
    for _, argument in ipairs(lists) do
        table.sort(listed[argument], function(a, b)
            if a[1] ~= b[1] then return a[1] < b[1] end
            return comes_before(a[2], b[2])
        end)
        local texts = {}
        for place, result in ipairs(listed[argument]) do texts[place] = result[2] end
        if not text_of[argument] then order[#order + 1] = argument end
        text_of[argument] = '[' .. table.concat(texts, ',') .. ']'
    end
    if #order == 0 then return payload end
    local added = {}
    for place, argument in ipairs(order) do
        added[place] = json_string(argument) .. ':' .. text_of[argument]
    end
    local given = without(payload, text_of)
    given = without_blanks_after(given, #given)
    local last = #given
    while last > 1 and given:byte(last) >= 128 and given:byte(last) < 192 do last = last - 1 end
    local body = without_blanks_after(given, last - 1)
    local comma = body:sub(-1) == '{' and '' or ','
    return body .. comma .. table.concat(added, ',') .. '}'
end
