#include "store/redis/scripts.h"

#include <openssl/evp.h>

#include <array>

#include "base/check.h"
#include "base/text.h"

namespace stint::store::redis {
namespace {

std::string sha1_hex(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  CHECK(::EVP_Digest(text.data(), text.size(), digest.data(), &size, ::EVP_sha1(), nullptr) == 1,
        "no SHA-1");
  return to_hex({reinterpret_cast<const char*>(digest.data()), size});
}

Script made(std::string_view text) { return {text, sha1_hex(text)}; }

// Judge everything, then wake, then write. Waking first: a missing permission for it must show
// before anything is written, and nobody sees the message before the script has ended. Of the
// writes only the first can be refused (memory, disk, replicas); should a later one be refused all
// the same, that is told apart.
constexpr std::string_view kCommit = R"lua(
local call, fmt, byte, match = redis.call, string.format, string.byte, string.match
local R, I = KEYS[1], KEYS[2]
local n = (#ARGV - 3) / 5
local fields = {'#id', '#run', '#now'}
for i = 1, n do fields[i + 3] = ':' .. ARGV[5 * i] end
local got = call('HMGET', R, unpack(fields))
if got[1] ~= ARGV[1] then return {-1} end
if got[2] ~= ARGV[2] then return {-2} end
local rev, ver, last, ahead = match(got[3] or '', '^(%d+) (%d+) (%d+) (%d+)$')
if not rev then return {-3} end
rev, ver, last, ahead = tonumber(rev), tonumber(ver), tonumber(last), tonumber(ahead)
local t = call('TIME')
local raw = t[1] * 1000000 + t[2]
if raw < last then ahead = ahead + last - raw end
local now = raw + ahead

local versions, fires, ttls, values = {}, {}, {}, {}
for i = 1, n do
  local kind, expect, demand = byte(ARGV[5 * i - 1], 1, 3)
  local s = got[i + 3]
  local v, f, l, at = 0, 0, 0, 1
  if s then
    v, f, l, at = match(s, '^(%d+) (%d+) (%d+) ()')
    if not v then return {-3} end
    v, f, l = tonumber(v), tonumber(f), tonumber(l)
  end
  if expect == 48 and v ~= 0 then return {0, i - 1} end
  if expect == 61 and v ~= tonumber(ARGV[5 * i + 1]) then return {0, i - 1} end
  if kind == 84 and v == 0 then return {0, i - 1} end
  if demand ~= 42 then
    local state = 110
    if f ~= 0 then state = now < f and 114 or 102 end
    if demand ~= state then return {0, i - 1} end
  end
  versions[i], fires[i], ttls[i], values[i] = v, f, l, at
end

local out = {1, 0, raw, now}
local puts, adds, dels, rems, wakes = {'', ''}, {}, {}, {}, {}
local changed, touched = false, false
for i = 1, n do
  local kind, _, _, timer = byte(ARGV[5 * i - 1], 1, 4)
  local key, v = ARGV[5 * i], versions[i]
  if kind == 82 then
    if v ~= 0 then
      changed = true
      dels[#dels + 1] = ':' .. key
      rems[#rems + 1] = key
      wakes[#wakes + 1] = key
    end
    v = 0
  elseif kind == 65 then
    changed = true
    ver = ver + 1
    local name = key .. fmt('%016.0f', ver)
    puts[#puts + 1] = ':' .. name
    puts[#puts + 1] = fmt('%.0f 0 0 ', ver) .. ARGV[5 * i + 3]
    adds[#adds + 1] = 0
    adds[#adds + 1] = name
    wakes[#wakes + 1] = key
    v = 0
  elseif kind ~= 67 then
    local f, l, value = fires[i], ttls[i], nil
    if kind == 83 then
      if v == 0 then
        adds[#adds + 1] = 0
        adds[#adds + 1] = key
      end
      changed = true
      ver = ver + 1
      v = ver
      value = ARGV[5 * i + 3]
      wakes[#wakes + 1] = key
    else
      value = got[i + 3]:sub(values[i])
    end
    if timer == 120 then
      f, l = 0, 0
    elseif timer ~= 107 then
      local ttl = tonumber(ARGV[5 * i + 2])
      local ends = now + ttl * 1000
      if timer == 115 or f <= ends then f, l = ends, ttl end
    end
    touched = true
    puts[#puts + 1] = ':' .. key
    puts[#puts + 1] = fmt('%.0f %.0f %.0f ', v, f, l) .. value
  end
  out[i + 4] = v
end
if changed then rev = rev + 1 end
out[2] = rev
if not changed and not touched then return out end

for i = 1, #wakes do call('PUBLISH', ARGV[3] .. wakes[i], '') end
puts[1] = '#now'
puts[2] = fmt('%.0f %.0f %.0f %.0f', rev, ver, raw, ahead)
call('HSET', R, unpack(puts))
local function later(command, key, list)
  if #list == 0 then return true end
  local r = redis.pcall(command, key, unpack(list))
  return not (type(r) == 'table' and r.err)
end
if later('ZADD', I, adds) and later('HDEL', R, dels) and later('ZREM', I, rems) then return out end
return {-4}
)lua";

constexpr std::string_view kScan = R"lua(
local keys = redis.call(ARGV[1], KEYS[2], ARGV[2], ARGV[3], 'LIMIT', 0, ARGV[4])
local fields = {'#id', '#run', '#now'}
for i = 1, #keys do fields[i + 3] = ':' .. keys[i] end
local got = redis.call('HMGET', KEYS[1], unpack(fields))
local t = redis.call('TIME')
local out = {t[1], t[2], got[1], got[2], got[3]}
for i = 1, #keys do
  out[2 * i + 4] = keys[i]
  out[2 * i + 5] = got[i + 3]
end
return out
)lua";

// A server that was started anew may have lost the end of what it acknowledged. Versions given then
// must not come again: they go on far ahead, and beyond the clock, which also tells two
// restorations of one backup apart. The record ARGV[4] tells those who count that something may be
// missing.  G1
constexpr std::string_view kRegister = R"lua(
local call, fmt = redis.call, string.format
local R, I = KEYS[1], KEYS[2]
local kinds = {[R] = 'hash', [I] = 'zset'}
for key, kind in pairs(kinds) do
  local is = call('TYPE', key).ok
  if is ~= 'none' and is ~= kind then return {'foreign', key} end
end
local f = call('HMGET', R, '#format', '#id', '#run', '#safe', '#now')
if not f[1] then
  if call('EXISTS', R) == 1 then return {'foreign', R} end
  if call('EXISTS', I) == 1 then return {'foreign', I} end
  if ARGV[1] == '' then return {'none', ''} end
elseif f[1] ~= 'stint 1' then
  return {'format', f[1]}
end
local tries = {
  {'PUBLISH', ARGV[5], ''}, {'HDEL', R, '#'}, {'ZADD', I, 'XX', 0, ''}, {'ZREM', I, ''},
  {'ZRANGEBYLEX', I, '[', '[', 'LIMIT', 0, 1}, {'ZREVRANGEBYLEX', I, '[', '[', 'LIMIT', 0, 1},
}
for i = 1, #tries do
  local r = redis.pcall(unpack(tries[i]))
  if type(r) == 'table' and r.err then
    if r.err:find('READONLY', 1, true) or r.err:find('MISCONF', 1, true) then return r end
    if r.err:find('OOM', 1, true) or r.err:find('NOREPLICAS', 1, true) then return r end
    return {'denied', tries[i][1]}
  end
end
local t = call('TIME')
local raw = t[1] * 1000000 + t[2]
if not f[1] then
  call('HSET', R, '#format', 'stint 1', '#id', ARGV[1], '#run', ARGV[2], '#safe', ARGV[3],
       '#now', fmt('0 0 %.0f 0', raw))
  return {'made', ARGV[1]}
end
local rev, ver, last, ahead = string.match(f[5] or '', '^(%d+) (%d+) (%d+) (%d+)$')
if not rev or not f[2] or not f[3] then return {'format', 'damaged'} end
-- An index that lost something is made anew from the records: else a scan would call them gone.
if call('HLEN', R) ~= call('ZCARD', I) + #{'#format', '#id', '#run', '#safe', '#now'} then
  call('ZREMRANGEBYRANK', I, 0, -1)
  local names, some = call('HKEYS', R), {}
  for i = 1, #names do
    if names[i]:sub(1, 1) == ':' then
      some[#some + 1] = 0
      some[#some + 1] = names[i]:sub(2)
    end
    if #some >= 1000 or i == #names and #some > 0 then
      call('ZADD', I, unpack(some))
      some = {}
    end
  end
end
if f[3] == ARGV[2] then
  if f[4] == '1' and ARGV[3] ~= '1' then call('HSET', R, '#safe', '0') end
  return {'found', f[2]}
end
rev, ver, last, ahead = tonumber(rev), tonumber(ver), tonumber(last), tonumber(ahead)
if raw < last then ahead = ahead + last - raw end
local now = raw + ahead
ver = math.max(ver + 4294967296, now)
local word = 'found'
local puts = {'#run', ARGV[2], '#safe', ARGV[3]}
if f[4] ~= '1' or ARGV[3] ~= '1' then
  word = 'lost'
  ver = ver + 1
  puts[#puts + 1] = ':' .. ARGV[4]
  puts[#puts + 1] = fmt('%.0f 0 0 %.0f', ver, math.ceil(now / 1000))
end
puts[#puts + 1] = '#now'
puts[#puts + 1] = fmt('%.0f %.0f %.0f %.0f', rev, ver, raw, ahead)
call('HSET', R, unpack(puts))
if word == 'lost' then call('ZADD', I, 0, ARGV[4]) end
return {word, f[2]}
)lua";

}  // namespace

const Script& commit_script() {
  static const Script script = made(kCommit);
  return script;
}
const Script& scan_script() {
  static const Script script = made(kScan);
  return script;
}
const Script& register_script() {
  static const Script script = made(kRegister);
  return script;
}

}  // namespace stint::store::redis
