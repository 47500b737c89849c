// What `stint torture` saw, as one page: numbers, violations, and a picture of who held what and
// when writes were accepted and refused. Self-contained; no script. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/time.h"

namespace stint::report {

// One resource. Times from the beginning of the play.
struct TortureLane {
  struct Stretch {
    Millis from{0};
    Millis to{0};
    std::uint64_t token = 0;
    std::string holder;
  };
  struct Mark {
    Millis at{0};
    bool accepted = false;
    std::string text;
  };
  std::string name;
  std::vector<Stretch> held;
  std::vector<Mark> writes;
};

struct TortureStory {
  std::string store;
  WallTime at{};
  Millis length{0};
  std::vector<std::pair<std::string, std::uint64_t>> counts;  // in the order to be shown
  std::vector<std::pair<std::string, std::uint64_t>> faults;
  struct Broken {
    std::string what;
    std::vector<std::string> operations;
  };
  std::vector<Broken> violations;
  std::vector<TortureLane> lanes;
};

// `most`: stretches and marks that a picture of one lane has; it ends where they do.
std::string torture_page(const TortureStory& story, std::size_t most = 1500);

}  // namespace stint::report
