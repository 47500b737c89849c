// Sleeping on a word in memory until another thread changes it, without a mutex.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/time.h"

namespace stint::os {

// Sleeps while the word has this value. May wake for nothing.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t value);
// The same, for so long at most.
void futex_wait_for(const std::atomic<std::uint32_t>& word, std::uint32_t value, Nanos longest);

// Whoever waited there may be gone, and the word with it: only its address is used.
void futex_wake_one(const std::atomic<std::uint32_t>& word);
void futex_wake_all(const std::atomic<std::uint32_t>& word);

}  // namespace stint::os
