// Who asks, and what they may.
#pragma once

#include <memory>
#include <string>

#include "api/keys.h"
#include "base/names.h"

namespace stint::server {

struct Caller {
  std::shared_ptr<const api::Key> key;  // null: no key is asked for here
  std::string_view bearer = {};         // as shown in the head of its request; never printed

  std::string name() const { return key ? key->name : std::string(); }
  bool may(api::Rights any) const { return !key || (key->rights & any) != 0; }
  bool reaches(std::string_view resource) const {
    if (!key || key->prefixes.empty()) return true;
    for (const std::string& prefix : key->prefixes) {
      if (resource.starts_with(prefix)) return true;
    }
    return false;
  }
  // KEYNAME/label: the key fixes the first part, the run the second. Who says it in full already
  // means the same.
  Result<Owner> owner(std::string_view label) const {
    if (!key) return Owner::parse(label);
    const std::string mine = key->name + "/";
    if (label.starts_with(mine)) return Owner::parse(label);
    return Owner::parse(mine + std::string(label));
  }
};

}  // namespace stint::server
