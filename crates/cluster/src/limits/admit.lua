-- Counts a call in all rates or in none and, if it was counted, takes a lease of all limits or of
-- none. Times are in microseconds of the clock of Redis.
-- KEYS: contact, settling, one per rate, one per limit
-- ARGV: lease, time of a lease, time to settle in milliseconds, number of rates,
--       interval and ahead of each rate, number of leases of each limit
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local lease, lease_time, settle = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local rates = tonumber(ARGV[4])
local limits = #KEYS - 2 - rates
local a_year = 31536000000

local function nanoseconds(microseconds)
  return string.format('%.0f', microseconds * 1000)
end

local answer, counters = {}, {}
for at = 1, rates do
  local interval, ahead = tonumber(ARGV[3 + 2 * at]), tonumber(ARGV[4 + 2 * at])
  local whole = math.max(tonumber(redis.call('GET', KEYS[2 + at]) or now), now)
  local early = whole + interval - now - ahead
  -- Numbers of this size are not exact.
  if early > 1 + ahead * 1e-15 then
    return {'exhausted', tostring(at - 1), nanoseconds(whole - now), nanoseconds(early)}
  end
  counters[at] = whole + interval
  answer[at] = nanoseconds(whole + interval - now)
end

local full = ''
if limits > 0 then
  -- If no replica has spoken for a while, Redis was away or has lost its data. Replicas report the
  -- leases that they hold before it grants any.
  if redis.call('EXISTS', KEYS[1]) == 0 then
    redis.call('SET', KEYS[2], '1', 'PX', settle)
  end
  redis.call('SET', KEYS[1], '1', 'PX', settle)
  if redis.call('EXISTS', KEYS[2]) == 1 then
    full = tostring(limits - 1)
  end
  for at = 1, limits do
    local key = KEYS[2 + rates + at]
    redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
    if full == '' and redis.call('ZCARD', key) >= tonumber(ARGV[4 + 2 * rates + at]) then
      full = tostring(at - 1)
    end
  end
  for at = 1, (full == '') and limits or 0 do
    local key = KEYS[2 + rates + at]
    redis.call('ZADD', key, now + lease_time, lease)
    redis.call('PEXPIRE', key, lease_time / 1000 + 1000)
  end
end
for at = 1, rates do
  local milliseconds = math.ceil((counters[at] - now) / 1000)
  redis.call('SET', KEYS[2 + at], string.format('%.0f', counters[at]), 'PX', math.max(1, math.min(milliseconds, a_year)))
end
return {'counted', full, unpack(answer)}
