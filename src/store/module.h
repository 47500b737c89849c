// A store that lives in a module of its own: what it is given to open, and its one entry.
//
// PostgreSQL, Redis, etcd and Durable Objects need libraries that would slow every start of the
// program; `app` loads their module on first use. A module exports one function:
//
//   STINT_STORE_MODULE(request, clock) { return PostgresStore::open(request, clock); }
#pragma once

#include <memory>

#include "base/result.h"
#include "base/time.h"
#include "net/address.h"
#include "store/seam.h"

namespace stint::store {

using net::Address;
using net::Host;

struct OpenRequest {
  Address address;
  Millis timeout{5000};  // the longest time that one call may take
  bool may_create = true;
  std::string key = {};  // STINT_KEY; empty: none
};

using OpenedStore = Result<std::unique_ptr<Store>>;
// Fills `answer`: the objects on both sides are of one build.
using ModuleEntry = void(const OpenRequest& request, const Clock& clock, OpenedStore* answer);
constexpr const char* kModuleEntry = "stint_open_store";

#define STINT_STORE_MODULE(request, clock)                                                \
  static stint::store::OpenedStore stint_open_checked(const stint::store::OpenRequest&,   \
                                                      const stint::Clock&);               \
  extern "C" __attribute__((visibility("default"))) void stint_open_store(                \
      const stint::store::OpenRequest& asked, const stint::Clock& time,                   \
      stint::store::OpenedStore* answer) {                                                \
    *answer = stint_open_checked(asked, time);                                            \
  }                                                                                       \
  stint::store::OpenedStore stint_open_checked(const stint::store::OpenRequest&(request), \
                                               const stint::Clock&(clock))

}  // namespace stint::store
