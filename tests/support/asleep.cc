#include "tests/support/asleep.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "base/check.h"
#include "os/fd.h"

namespace stint::test {
namespace {

// In place, all eight bytes at once: the programs have the file mapped.
void set(const std::string& file, Nanos asleep) {
  const os::Fd fd(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  const std::int64_t word = asleep.count();
  CHECK(fd && ::pwrite(fd.get(), &word, sizeof word, 0) == sizeof word, "the machine's file");
}

}  // namespace

Machine::Machine(std::string file) : file_(std::move(file)) { set(file_, asleep_); }

Command Machine::here(Command command, const std::string& preload) const {
  command.env.emplace_back("LD_PRELOAD", preload);
  command.env.emplace_back("ASLEEP_FILE", file_);
  return command;
}

void Machine::suspend(Millis length) {
  asleep_ += length;
  set(file_, asleep_);
}

}  // namespace stint::test
