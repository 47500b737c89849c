#include "os/program.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "base/text.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/pause.h"

namespace stint::os {
namespace {

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

Result<pid_t> spawn(const ProgramCall& call, int out) {
  std::vector<std::string> words = call.argv;
  std::vector<std::string> entries = call.environment;
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, words.front().c_str(), &actions, &attributes,
                                    pointers(words).data(), pointers(entries).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed == 0) return child;
  return Error{Code::Failed, cat("starting ", quoted(words.front()), ": ", std::strerror(failed))};
}

// Reads to the end of the output; false: the limit came first.
bool drain(int fd, MonoTime until, std::string& out) {
  constexpr std::size_t kMost = 1U << 20U;
  std::array<char, 4096> buffer{};
  while (SystemClock().mono() < until) {
    if (!wait_readable({fd}, until).front()) continue;
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got == 0) return true;
    if (got < 0 && errno != EINTR) return false;
    if (got > 0 && out.size() < kMost) out.append(buffer.data(), static_cast<std::size_t>(got));
  }
  return false;
}

}  // namespace

Result<ProgramEnd> run_program(const ProgramCall& call) {
  auto pipe = make_pipe();
  if (!pipe) return pipe.error();
  const MonoTime until = SystemClock().mono() + call.limit;
  const auto child = spawn(call, pipe->write.get());
  if (!child) return child.error();
  pipe->write.reset();
  ProgramEnd end;
  const bool ended = drain(pipe->read.get(), until, end.out);
  if (!ended) ::kill(-*child, SIGKILL);
  int status = 0;
  while (::waitpid(*child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!ended) {
    return Error{Code::Failed, cat(quoted(call.argv.front()), " did not end within ",
                                   format_duration(call.limit))};
  }
  end.exit_code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return end;
}

std::string own_program() {
  std::array<char, 4096> path{};
  const ssize_t length = ::readlink("/proc/self/exe", path.data(), path.size());
  return length <= 0 ? std::string() : std::string(path.data(), static_cast<std::size_t>(length));
}

}  // namespace stint::os
