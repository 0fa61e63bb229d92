-- Returns the home of a session, which is `me` if the present home is dead or has released it.
-- Returns "" if the client has ended the session, and false if `me` is not alive or if it is too
-- early to say that the present home is dead. Also returns what was saved of the session.
-- KEYS: times of the last beats, the home of the session, times of the store (see beat.lua), what
-- was saved of the session. ARGV: the replica that opened the session, me, time until a replica is
-- dead (ms), lifetime of a session (ms), prefix of the keys that remember dead replicas.
local seen, key, store, saved = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local opener, me, dead_after, lifetime, gone = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function is_alive(id)
  local last = redis.call('ZSCORE', seen, id)
  return last and tonumber(last) > now - dead_after
end

local state = redis.call('GET', key)
if state == 'ended' then
  return {'', ''}
end
local home = opener
if state == 'released' then
  home = nil
elseif state then
  home = state
end
if home and is_alive(home) then
  return {home, ''}
end
local resumed = tonumber(redis.call('HGET', store, 'resumed'))
local is_known = not home or redis.call('EXISTS', gone .. home) == 1 or resumed and now - resumed >= dead_after
if not is_alive(me) or not is_known then
  return false
end
redis.call('SET', key, me, 'PX', lifetime)
return {me, redis.call('GET', saved) or ''}
