-- Renews leases. Returns the number of live replicas, or '' if it is not known, and the leases that
-- have expired. Also tells that this replica can be heard.
-- KEYS: contact, settling, live replicas, the limit of each lease
-- ARGV: time of a lease in microseconds, time to settle in milliseconds, this replica, each lease and
--       what to do if it is not known: 'keep' reports it as expired, 'add' adds it
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
local lease_time, settle = tonumber(ARGV[1]), ARGV[2]
if redis.call('EXISTS', KEYS[1]) == 0 then
  redis.call('SET', KEYS[2], '1', 'PX', settle)
end
redis.call('SET', KEYS[1], '1', 'PX', settle)
-- While nothing is granted, a lease that is not known was lost by Redis and belongs to no other call.
local settling = redis.call('EXISTS', KEYS[2]) == 1
redis.call('ZADD', KEYS[3], now + lease_time, ARGV[3])
redis.call('ZREMRANGEBYSCORE', KEYS[3], '-inf', now)
redis.call('PEXPIRE', KEYS[3], lease_time / 1000 + 1000)
local answer = {settling and '' or tostring(redis.call('ZCARD', KEYS[3]))}
for at = 1, #KEYS - 3 do
  local key, lease, unknown = KEYS[3 + at], ARGV[2 + 2 * at], ARGV[3 + 2 * at]
  local until_time = tonumber(redis.call('ZSCORE', key, lease) or 0)
  if until_time > now or settling or unknown == 'add' then
    redis.call('ZADD', key, now + lease_time, lease)
    redis.call('PEXPIRE', key, lease_time / 1000 + 1000)
  else
    answer[#answer + 1] = lease
  end
end
return answer
