-- Stores how a call ended. If all outcomes together are too large, removes the oldest.
-- KEYS: key, finished keys by the time when they expire, sizes of their outcomes
-- ARGV: owner, digest of the parameters, time of the claim, lifetime of a key in milliseconds,
--       state, outcome or '', most bytes of all outcomes
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local owner = redis.call('HGET', KEYS[1], 'owner')
if owner and owner ~= ARGV[1] then
  return 0
end
local outcome, lifetime = ARGV[6], tonumber(ARGV[4])
redis.call('HSET', KEYS[1], 'params', ARGV[2], 'owner', ARGV[1], 'state', ARGV[5], 'claimed', ARGV[3])
-- Long enough for requests that wait for the outcome.
local left = math.max(math.floor(tonumber(ARGV[3]) / 1000 + lifetime - now / 1000), 10000)
redis.call('PEXPIRE', KEYS[1], left)
if outcome == '' then
  return 1
end
redis.call('HSET', KEYS[1], 'outcome', outcome)
redis.call('ZADD', KEYS[2], now + left * 1000, KEYS[1])
redis.call('HSET', KEYS[3], KEYS[1], #outcome)
local total = redis.call('HINCRBY', KEYS[3], 'total', #outcome)
local function forget(key)
  total = redis.call('HINCRBY', KEYS[3], 'total', -tonumber(redis.call('HGET', KEYS[3], key) or 0))
  redis.call('HDEL', KEYS[3], key)
  redis.call('ZREM', KEYS[2], key)
end
for _, key in ipairs(redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now, 'LIMIT', 0, 100)) do
  forget(key)
end
while total > tonumber(ARGV[7]) do
  local oldest = redis.call('ZRANGE', KEYS[2], 0, 0)[1]
  if not oldest then
    break
  end
  redis.call('HDEL', oldest, 'outcome')
  forget(oldest)
end
redis.call('PEXPIRE', KEYS[2], lifetime + 60000)
redis.call('PEXPIRE', KEYS[3], lifetime + 60000)
return 1
