-- Releases leases.
-- KEYS: the limit of each lease
-- ARGV: each lease
for at = 1, #KEYS do
  redis.call('ZREM', KEYS[at], ARGV[at])
end
return #KEYS
