-- Hold a name for a while, if nobody else does, or if who does is known to be dead. Who holds it.
-- KEYS: name. ARGV: owner, milliseconds, dead owner.
local holder = redis.call('GET', KEYS[1])
if not holder or holder == ARGV[1] or holder == ARGV[3] then
    redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
    return ARGV[1]
end
return holder
