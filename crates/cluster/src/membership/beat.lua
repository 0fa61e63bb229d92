-- Registers a replica, removes dead ones, and returns a mark, the IDs and records of the live ones, and
-- which replica runs which server (see claim_server.lua). The mark is not empty while a missing beat says
-- nothing about a replica, see below. Returns false if this replica was considered dead: others may have
-- taken over what it held, so it must come back under a new ID. All times are those of Redis, because the
-- clocks of replicas may differ.
-- KEYS: times of the last beats, records, times of the store, holders of servers. ARGV: ID, record, URL,
-- time until a replica is dead (ms), prefix of the keys that remember dead replicas, how long they are
-- remembered (ms), the longest time without any beat (ms).
local seen, records, store = KEYS[1], KEYS[2], KEYS[3]
local id, record, url, dead_after, gone, remember = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local stamp = string.format('%.0f', now)

local function remove(dead)
  redis.call('ZREM', seen, dead)
  redis.call('HDEL', records, dead)
  redis.call('SET', gone .. dead, '1', 'PX', remember)
end

-- If there was no beat at all for a while, Redis did not answer or has lost its data, and the replicas
-- need not be dead. They get the time to report themselves again.
local last = tonumber(redis.call('HGET', store, 'beat'))
if not last or now - last > tonumber(ARGV[7]) then
  redis.call('HSET', store, 'resumed', stamp)
  for _, known in ipairs(redis.call('ZRANGE', seen, 0, -1)) do
    redis.call('ZADD', seen, stamp, known)
  end
end
redis.call('HSET', store, 'beat', stamp)
local resumed = redis.call('HGET', store, 'resumed')
local mark = now - tonumber(resumed) < dead_after and resumed or ''

for _, dead in ipairs(redis.call('ZRANGE', seen, '-inf', now - dead_after, 'BYSCORE')) do
  remove(dead)
end
if redis.call('EXISTS', gone .. id) == 1 then
  return false
end
local all = redis.call('HGETALL', records)
for at = 1, #all, 2 do
  -- Another version may have written it.
  local readable, other = pcall(cjson.decode, all[at + 1])
  -- A process with another ID at the same address has replaced that replica.
  if all[at] ~= id and readable and type(other) == 'table' and other.url == url then
    remove(all[at])
  end
end
redis.call('ZADD', seen, stamp, id)
redis.call('HSET', records, id, record)
for _, key in ipairs(KEYS) do
  redis.call('PEXPIRE', key, remember)
end
return {mark, redis.call('HGETALL', records), redis.call('HGETALL', KEYS[4])}
