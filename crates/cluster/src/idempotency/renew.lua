-- Renews the leases of keys whose calls are running, and adds keys that Redis has lost.
-- KEYS: each key
-- ARGV: time of a lease in microseconds, lifetime of a key in milliseconds,
--       owner, digest of the parameters and time of the claim of each key
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local lease = string.format('%.0f', now + tonumber(ARGV[1]))
for at = 1, #KEYS do
  local owner, params, claimed = ARGV[3 * at], ARGV[3 * at + 1], ARGV[3 * at + 2]
  local known = redis.call('HGET', KEYS[at], 'owner')
  if not known then
    redis.call('HSET', KEYS[at], 'params', params, 'owner', owner, 'state', 'running', 'claimed', claimed,
      'lease', lease)
  elseif known == owner then
    redis.call('HSET', KEYS[at], 'lease', lease)
  end
  if not known or known == owner then
    -- The key must outlive its call, and if its owner dies, no other call may get it soon.
    redis.call('PEXPIRE', KEYS[at], ARGV[2])
  end
end
return #KEYS
