-- Returns which replica runs a server, and which one ran it before it counted as dead, as its ID and URL.
-- If no live replica runs it and `me` wants to, `me` becomes the holder. Returns "" if no replica runs
-- it, and false if `me` is not alive or if it is too early to say that no replica does.
-- KEYS: times of the last beats, holders of servers, times of the store (see beat.lua).
-- ARGV: server, me, my URL, the claim (`no`, `free` or `held`), time until a replica is dead (ms),
-- prefix of the keys that remember dead replicas, lifetime of the holders (ms).
local seen, holders, store = KEYS[1], KEYS[2], KEYS[3]
local server, me, url, claim, dead_after, gone = ARGV[1], ARGV[2], ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function is_alive(id)
  local last = redis.call('ZSCORE', seen, id)
  return last and tonumber(last) > now - dead_after
end

local value = redis.call('HGET', holders, server)
-- A server that its holder has released has the value `-`.
local released = value == '-'
local holder = value and not released and string.match(value, '^%S+')
if holder and (holder == me or is_alive(holder)) then
  return {holder, ''}
end
if claim == 'no' then
  return {'', ''}
end
if not is_alive(me) then
  return false
end
-- Without a value, Redis may have lost its data, and the holder has not reported itself again yet.
local resumed = tonumber(redis.call('HGET', store, 'resumed'))
local is_settled = resumed and now - resumed >= dead_after
local is_gone = holder and redis.call('EXISTS', gone .. holder) == 1
if claim == 'free' and not (released or is_gone or is_settled) then
  return false
end
redis.call('HSET', holders, server, me .. ' ' .. url)
redis.call('PEXPIRE', holders, ARGV[7])
return {me, holder and value or ''}
