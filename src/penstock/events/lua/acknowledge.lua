-- Acknowledge entries and delete them, in one step: what ingest has written is nowhere else.
-- KEYS: stream. ARGV: group, ids.
redis.call('XACK', KEYS[1], ARGV[1], unpack(ARGV, 2))
return redis.call('XDEL', KEYS[1], unpack(ARGV, 2))
