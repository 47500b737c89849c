// What runs inside the server. None of it knows what a lease is.
//
// Two keys hold a store, both in one hash slot:
//
//   {stint}:records   a hash. ":KEY" is a record: "VERSION FIRES_AT_US TTL_MS VALUE" (0 0: no
//                     timer). "#..." is the store's own: #format, #id, #run (of the server),
//                     #safe (1: this run of the server loses nothing), #now.
//   {stint}:keys      a sorted set of the records' keys, all with score 0: their order.
//
// #now is "REVISION VERSION RAW_US AHEAD_US": the last of each. RAW is the server's clock at the
// last write; when that clock is behind it, it was set back, and AHEAD grows by as much: the time
// of timers goes on from where it was.                                                          G4
#pragma once

#include <string>
#include <string_view>

namespace stint::store::redis {

struct Script {
  std::string_view text;
  std::string sha;  // in hexadecimal, as EVALSHA wants it
};

// KEYS: records, keys. ARGV: the store's id, the server's run id, the channels' beginning, then
// five a step: its code (kind, expectation, demand, timer), key, version, ttl in ms, value.
// Returns {1, revision, raw, now, a version a step...}, or {0, the first step that did not hold},
// or {-1} another store, {-2} another run, {-3} damaged, {-4} it may be written in part.
const Script& commit_script();

// KEYS: records, keys. ARGV: command, from, to, limit. Returns {seconds, microseconds, #id, #now,
// key, record, key, record...}.
const Script& scan_script();

// At every new connection. KEYS: records, keys. ARGV: an id for a new store ('': make none), the
// server's run id, '1' if it loses nothing, the record that tells of a lost tail, a channel to try.
// Returns {word, id}; the words are made, found, lost (found, and the tail may be lost), none,
// foreign and the name of a key, format and what stands there, denied and a command.
const Script& register_script();

}  // namespace stint::store::redis
