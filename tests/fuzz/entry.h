// What every fuzz target shares: its entry, and what must hold of what it read.
#pragma once

#include <cstdlib>

// `fuzz_replay` links several targets, each under a name of its own.
#ifndef FUZZ_ENTRY
#define FUZZ_ENTRY LLVMFuzzerTestOneInput
#endif

namespace stint::fuzz {

inline void must(bool holds) {
  if (!holds) std::abort();
}

}  // namespace stint::fuzz
