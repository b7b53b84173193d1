-- Take in what became ready, and wake everybody.
--
-- ARGV[1]  JSON: ready (lane to ranks and members), doubt, distrust, due, expires, most; or ''
-- ARGV[2]  who tells it

if ARGV[1] ~= '' then put(cjson.decode(ARGV[1])) end
redis.call('PUBLISH', PREFIX .. 'wake', ARGV[2])
return 1
