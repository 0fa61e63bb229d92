-- Removes a replica that stops, so that the others need not wait until it counts as dead.
-- KEYS: times of the last beats, records, the key that remembers this replica as dead.
-- ARGV: ID, how long it is remembered (ms).
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('HDEL', KEYS[2], ARGV[1])
redis.call('SET', KEYS[3], '1', 'PX', ARGV[2])
return 1
