-- Counters since the beginning.
--
-- needs: common
-- reads: metrics:live, metrics:totals, metrics:…
-- answers {fields and values of all steps but the live one, those of the live one}

local live = redis.call('GET', PREFIX .. 'metrics:live')
return {
    redis.call('HGETALL', PREFIX .. 'metrics:totals'),
    live and redis.call('HGETALL', PREFIX .. 'metrics:' .. FINE_MS .. ':' .. live) or {},
}
