-- Bookmarks: how far a move has got with each part of what it moves in here.
-- needs: common
-- ARGV[4]  the move's id
-- ARGV[5]  the part
-- ARGV[6]  where its bookmark must stand, or '' for nowhere
-- ARGV[7]  where it stands then

local MOVES = PREFIX .. 'moves'

local function may_go_on()
    local found = redis.call('HMGET', MOVES, 'move', ARGV[5])
    return found[1] == ARGV[4] and (found[2] or '') == ARGV[6]
end

local function move_bookmark()
    redis.call('HSET', MOVES, ARGV[5], ARGV[7])
end
