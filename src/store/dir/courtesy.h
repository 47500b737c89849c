// A lock that spares writers useless races. Nothing is unsafe without it, so nobody waits for it
// long: a holder may be frozen.
#pragma once

#include "base/random.h"
#include "base/time.h"
#include "store/dir/place.h"

namespace stint::store::dir {

class Courtesy {
 public:
  // False: not to be had within `most`.
  bool take(const Place& place, const Clock& clock, Millis most);
  bool held() const { return static_cast<bool>(file_); }

 private:
  os::Fd file_;  // closing it gives the lock back
};

}  // namespace stint::store::dir
