// Store URLs: which store, where, with which options, and never a password in print.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "base/result.h"

namespace stint::app {

struct StoreUrl {
  std::string scheme;                          // sqlite, memory; others are named in the error
  std::string path;                            // sqlite: absolute
  std::map<std::string, std::string> options;  // ?name=value&...
  std::string whole;                           // as given
  std::string printable;                       // without its password
  bool has_password = false;

  // What names the store on this machine: claims and anchors are kept under it.
  std::string identity() const;
};

// Unknown schemes and options are errors.
Result<StoreUrl> parse_store_url(std::string_view text);

}  // namespace stint::app
