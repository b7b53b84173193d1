-- Take or keep a leadership for a term.
--
-- needs: common
-- writes: leaders, room
-- ARGV[4] the role
-- ARGV[5] the owner
-- ARGV[6] the term in milliseconds
-- answers 1, or 0 while someone else has it

despite_full_memory()
local held = redis.call('HGET', PREFIX .. 'leaders', ARGV[4])
if held then
    local term_ends, owner = string.match(held, '^(%S+) (.*)$')
    if owner ~= ARGV[5] and tonumber(term_ends) > monotonic then return 0 end
end
local term_ends = int(monotonic + tonumber(ARGV[6]))
redis.call('HSET', PREFIX .. 'leaders', ARGV[4], term_ends .. ' ' .. ARGV[5])
return 1
