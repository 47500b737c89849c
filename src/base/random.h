// The one source of chance. The real one is os/random.h; a simulation gives a seeded one.
#pragma once

#include <cstdint>
#include <string>

namespace stint {

class Random {
 public:
  virtual ~Random() = default;
  virtual std::uint64_t next() = 0;

  // Uniform in [0, bound); bound > 0.
  std::uint64_t below(std::uint64_t bound);
  // 128 bits as 32 hexadecimal digits.
  std::string id_hex();
};

// splitmix64: for simulations and tests; a seed is a run.
class SeededRandom final : public Random {
 public:
  explicit SeededRandom(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next() override;

 private:
  std::uint64_t state_;
};

}  // namespace stint
