-- Lets another replica run a server, unless one does already.
-- KEYS: holders of servers. ARGV: server, me.
local value = redis.call('HGET', KEYS[1], ARGV[1])
if value and string.match(value, '^%S+') == ARGV[2] then
  redis.call('HSET', KEYS[1], ARGV[1], '-')
end
return 1
