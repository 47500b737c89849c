// What a store may tell besides the seam: that something which it does by itself, between the
// commits, fails. Who stays (`stint serve`) asks now and then, and says it where people look.
#pragma once

#include <string>

namespace stint::store {

class Troubled {
 public:
  virtual ~Troubled() = default;
  // In words, with what it means for commits; empty: all is well. Any thread; never waits long.
  virtual std::string trouble() const = 0;
};

}  // namespace stint::store
