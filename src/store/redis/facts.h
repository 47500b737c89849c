// What a Redis server says of itself, and what follows from it: what it may lose, and what an
// operator should be told.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/seam.h"

namespace stint::store {

struct RedisFacts {
  std::string version;
  int major = 0;
  std::string run_id;  // another one: the server was started anew, or this is another server
  std::string mode;    // standalone, cluster, sentinel
  bool replica = false;
  std::string master;  // of a replica: host:port
  bool loading = false;
  std::uint64_t replicas = 0;  // connected now
  std::uint64_t online = 0;    // of these, the ones that have all the data
  bool was_replica = false;    // it became the master by a fail-over in this life
  std::string eviction;        // maxmemory-policy
  std::uint64_t max_memory = 0;
  bool append_only = false;
  std::optional<std::string> fsync;  // appendfsync; empty: this user may not ask
  bool sync_pauses = false;          // no-appendfsync-on-rewrite
  std::uint32_t wait = 0;            // ?wait=

  // An acknowledged commit survives kill -9 of the server and a power cut.
  bool durable() const;
  // And no fail-over can have lost one either.
  bool keeps_tail() const;
  std::string may_lose() const;
  // For doctor.
  std::vector<Finding> findings() const;
  // What the user that opened the store may do. Without what is needed it would not be open: the
  // script that looks for the store tries it (scripts.h).
  struct Caller {
    std::string user;  // empty: the default one
    bool anybody;      // the server asked for nothing that not everybody has who reaches it
  };
  Finding rights(const Caller& caller) const;
};

namespace redis {

// `info`: the answers to INFO, one after another. `config`: name, value, name, value...; empty when
// the server did not want to say.
Result<RedisFacts> read_facts(std::string_view info, const std::vector<std::string>& config);

// One clear line why this server cannot be used; done if it can.
Status check_usable(const RedisFacts& facts, std::string_view where);

}  // namespace redis
}  // namespace stint::store
