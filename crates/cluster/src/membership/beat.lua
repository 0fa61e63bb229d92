-- Registers a replica, removes dead ones, and returns the live ones as a flat list of IDs and
-- records. Returns false if this replica was considered dead: others may have taken over what it
-- held, so it must come back under a new ID. All times are those of Redis, because the clocks of
-- replicas may differ.
-- KEYS: times of the last beats, records. ARGV: ID, record, URL, time until a replica is dead (ms),
-- prefix of the keys that remember dead replicas, how long they are remembered (ms).
local seen, records = KEYS[1], KEYS[2]
local id, record, url, dead_after, gone, remember = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), ARGV[5], ARGV[6]
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function remove(dead)
  redis.call('ZREM', seen, dead)
  redis.call('HDEL', records, dead)
  redis.call('SET', gone .. dead, '1', 'PX', remember)
end

for _, dead in ipairs(redis.call('ZRANGE', seen, '-inf', now - dead_after, 'BYSCORE')) do
  remove(dead)
end
if redis.call('EXISTS', gone .. id) == 1 then
  return false
end
local all = redis.call('HGETALL', records)
for at = 1, #all, 2 do
  -- A process with another ID at the same address has replaced that replica.
  if all[at] ~= id and cjson.decode(all[at + 1]).url == url then
    remove(all[at])
  end
end
redis.call('ZADD', seen, string.format('%.0f', now), id)
redis.call('HSET', records, id, record)
redis.call('PEXPIRE', seen, remember)
redis.call('PEXPIRE', records, remember)
return redis.call('HGETALL', records)
