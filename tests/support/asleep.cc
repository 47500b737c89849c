#include "tests/support/asleep.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <utility>

#include "base/check.h"
#include "os/fd.h"

namespace stint::test {

Machine::Machine(std::string file) : file_(std::move(file)) { write(); }

// In place: the programs have the file mapped.
void Machine::write() const {
  const os::Fd fd(::open(file_.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  const std::int64_t words[] = {asleep_.count(), stepped_.count()};
  CHECK(fd && ::pwrite(fd.get(), words, sizeof words, 0) == sizeof words, "the machine's file");
}

Command Machine::here(Command command, const std::string& preload) const {
  command.env.emplace_back("LD_PRELOAD", preload);
  command.env.emplace_back("ASLEEP_FILE", file_);
  return command;
}

void Machine::suspend(Millis length) {
  asleep_ += length;
  write();
}

void Machine::step_wall(Nanos by) {
  stepped_ = by;
  write();
}

}  // namespace stint::test
