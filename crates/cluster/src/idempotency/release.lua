-- Makes a key usable again.
-- KEYS: key, all keys, keys of the principal
-- ARGV: owner
if redis.call('HGET', KEYS[1], 'owner') == ARGV[1] then
  redis.call('DEL', KEYS[1])
  redis.call('ZREM', KEYS[2], KEYS[1])
  redis.call('ZREM', KEYS[3], KEYS[1])
end
return 1
