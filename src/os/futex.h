// Sleeping on a word in memory until another thread changes it, without a mutex.
#pragma once

#include <atomic>
#include <cstdint>

namespace stint::os {

// Sleeps while the word has this value. May wake for nothing.
void futex_wait(const std::atomic<std::uint32_t>& word, std::uint32_t value);

void futex_wake_one(const std::atomic<std::uint32_t>& word);
void futex_wake_all(const std::atomic<std::uint32_t>& word);

}  // namespace stint::os
