// Store URLs: which store, where, with which options, and never a secret in print.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "store/module.h"

namespace stint::app {

struct StoreUrl : store::Address {
  bool has_password = false;
  std::string module;  // the one that holds this store; empty: part of the program

  // The whole URL, and the printable one, with a path that means the same from every directory.
  std::string absolute() const;
  std::string absolute_printable() const;

  // What names the store on this machine: claims and anchors are kept under it.
  std::string identity() const;
};

// Unknown schemes and options are errors. Paths are made absolute.
Result<StoreUrl> parse_store_url(std::string_view text);

}  // namespace stint::app
