#include "os/birthplace.h"

#include <pthread.h>
#include <unistd.h>

#include <atomic>

namespace stint::os {
namespace {

// Forks between the first process that asked and this one: a number of a process comes again.
std::atomic<unsigned> forks = 0;

void count_forks() {
  [[maybe_unused]] static const int registered =
      ::pthread_atfork(nullptr, nullptr, [] { ++forks; });
}

}  // namespace

Birthplace::Birthplace() : process_(::getpid()) {
  count_forks();
  forks_ = forks;
}

// By the number too: a child that was made by clone() is not counted.
bool Birthplace::here() const { return forks == forks_ && ::getpid() == process_; }

}  // namespace stint::os
