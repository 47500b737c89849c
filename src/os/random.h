// The kernel's random numbers.
#pragma once

#include "base/random.h"

namespace stint::os {

class SystemRandom final : public Random {
 public:
  std::uint64_t next() override;
};

}  // namespace stint::os
