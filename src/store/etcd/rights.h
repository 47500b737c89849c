// What the user of the URL may do in etcd, as its roles say: for `stint doctor`.
#pragma once

#include <string>
#include <vector>

#include "store/etcd/gateway.h"
#include "store/etcd/txn.h"
#include "store/seam.h"

namespace stint::store::etcd {

// Of one role: what etcd calls a permission.
struct Permission {
  bool reads = false;
  bool writes = false;
  KeyRange keys;  // end empty: the one key
};

struct Caller {
  std::string user;          // empty: none; whoever may ask without one finds authentication off
  bool certificate = false;  // of our own, shown to every member
};

// Pure. `roles`: of the user.
Finding judge_rights(const Caller& caller, const std::vector<std::string>& roles,
                     const std::vector<Permission>& permissions, const KeyRange& needed);

// Asks for the roles and what they permit. That the user may not ask is a finding, too.
Finding ask_rights(Gateway& gateway, const Caller& caller, const KeyRange& needed,
                   const Deadline& deadline);

}  // namespace stint::store::etcd
