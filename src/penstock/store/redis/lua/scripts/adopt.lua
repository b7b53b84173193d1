-- Write what some records of a move come to, and the bookmark.
-- needs: common bookmarks
-- writes: moves, what ARGV names
-- ARGV[8]… commands: how many arguments follow the key, the command, the key without its prefix,
--          the arguments
-- answers  1, or 0 when the bookmark is somewhere else, and nothing is written

if not may_go_on() then return 0 end
local at = 8
while ARGV[at] do
    local last = at + 2 + tonumber(ARGV[at])
    redis.call(ARGV[at + 1], PREFIX .. ARGV[at + 2], unpack(ARGV, at + 3, last))
    at = last + 1
end
move_bookmark()
return 1
