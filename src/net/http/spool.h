// A request's body that is kept until it is whole: in memory, and in a file without a name in the
// temporary folder where it is long.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "os/fd.h"

namespace stint::net::http {

class Spool {
 public:
  static constexpr std::size_t kMostInMemory = std::size_t{64} << 10U;

  // Errors: Unavailable: there is no room for it.
  Status add(std::string_view piece);
  std::uint64_t size() const { return size_; }
  // What stands from there on, not all of it where it is long; empty: that was all. Errors:
  // Unavailable.
  Result<std::string> piece(std::uint64_t from) const;

 private:
  std::string memory_;
  os::Fd file_;  // given: all of it is there
  std::uint64_t size_ = 0;
};

}  // namespace stint::net::http
