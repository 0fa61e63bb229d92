-- Claims an idempotency key, or returns its state.
-- KEYS: key, all keys, keys of the principal
-- ARGV: owner, digest of the parameters, time of a lease in microseconds, lifetime of a key in
--       milliseconds, most keys, most keys of a principal
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local known = redis.call('HMGET', KEYS[1], 'params', 'state', 'lease', 'outcome')
local params, state, lease, outcome = known[1], known[2], known[3], known[4]
if params then
  if params ~= ARGV[2] then
    return {'different'}
  elseif state == 'running' then
    return {tonumber(lease) > now and 'running' or 'unknown'}
  elseif state == 'finished' then
    return outcome and {'finished', outcome} or {'evicted'}
  end
  return {'unknown'}
end
for at, most in ipairs({ARGV[5], ARGV[6]}) do
  if redis.call('ZCOUNT', KEYS[1 + at], now, '+inf') >= tonumber(most) then
    return {'full'}
  end
end
-- The first command that writes is one that Redis refuses when it is full.
local claimed = string.format('%.0f', now)
redis.call('HSET', KEYS[1], 'params', ARGV[2], 'owner', ARGV[1], 'state', 'running', 'claimed', claimed,
  'lease', string.format('%.0f', now + tonumber(ARGV[3])))
redis.call('PEXPIRE', KEYS[1], ARGV[4])
for at = 2, 3 do
  redis.call('ZREMRANGEBYSCORE', KEYS[at], '-inf', now)
  redis.call('ZADD', KEYS[at], now + tonumber(ARGV[4]) * 1000, KEYS[1])
  redis.call('PEXPIRE', KEYS[at], ARGV[4])
end
return {'claimed', claimed}
