#include "os/program.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>
#include <map>

#include "base/text.h"
#include "os/clock.h"
#include "os/exec_words.h"
#include "os/fd.h"
#include "os/pause.h"

namespace stint::os {
namespace {

std::vector<std::string> environment_of(const ProgramCall& call) {
  if (!call.inherits) return call.environment;
  std::map<std::string, std::string, std::less<>> values;
  const auto name_of = [](std::string_view entry) { return entry.substr(0, entry.find('=')); };
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry)
    values.emplace(name_of(*entry), *entry);
  for (const std::string& entry : call.environment) {
    values.erase(std::string(name_of(entry)));
    if (entry.find('=') != entry.npos) values.emplace(name_of(entry), entry);
  }
  std::vector<std::string> out;
  for (auto& [name, entry] : values) out.push_back(std::move(entry));
  return out;
}

struct Ends {
  int in = -1;
  int out = -1;
  int talk = -1;
};

Result<pid_t> spawn(const ProgramCall& call, const Ends& ends) {
  std::vector<std::string> words = call.argv;
  std::vector<std::string> entries = environment_of(call);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  // A session of its own has no terminal, so that nothing in it can ask there.
  posix_spawnattr_setflags(
      &attributes, static_cast<short>(POSIX_SPAWN_SETSIGMASK |
                                      (call.apart ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends.out, STDOUT_FILENO);
  if (call.apart) {
    posix_spawn_file_actions_adddup2(&actions, ends.in, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends.talk, STDERR_FILENO);
  }
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, words.front().c_str(), &actions, &attributes,
                                    exec_words(words).data(), exec_words(entries).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed == 0) return child;
  return Error{Code::Failed, cat("starting ", quoted(words.front()), ": ", std::strerror(failed))};
}

// Takes what there is to read. False: the end of the output, or an error.
bool take(int fd, std::string& out) {
  constexpr std::size_t kMost = 1U << 20U;
  std::array<char, 4096> buffer{};
  const ssize_t got = ::read(fd, buffer.data(), buffer.size());
  if (got < 0) return errno == EINTR;
  if (got > 0 && out.size() < kMost) out.append(buffer.data(), static_cast<std::size_t>(got));
  return got > 0;
}

struct Listening {
  int fd;
  std::string* into;
  bool open = true;
};

// Reads until the program has ended; false: the limit came first.
bool listen(pid_t child, std::vector<Listening> outputs, MonoTime until) {
  const Fd ended(static_cast<int>(::syscall(SYS_pidfd_open, child, 0)));
  bool gone = false;
  while (SystemClock().mono() < until) {
    std::vector<int> fds;
    std::vector<Listening*> whose;
    for (Listening& one : outputs) {
      if (!one.open) continue;
      fds.push_back(one.fd);
      whose.push_back(&one);
    }
    if (!gone && ended) fds.push_back(ended.get());
    if (fds.empty()) return true;
    // Once it has ended, what it left in the pipes is read, and no more is waited for.
    const auto ready = wait_readable(fds, gone ? SystemClock().mono() : until);
    bool any = false;
    for (std::size_t i = 0; i < whose.size(); ++i) {
      if (!ready[i]) continue;
      any = true;
      whose[i]->open = take(whose[i]->fd, *whose[i]->into);
    }
    if (gone && !any) return true;
    if (!gone && ended && ready.back()) gone = true;
  }
  return false;
}

}  // namespace

Result<ProgramEnd> run_program(const ProgramCall& call) {
  auto out = make_pipe();
  if (!out) return out.error();
  auto talk = make_pipe();
  if (!talk) return talk.error();
  auto in = make_pipe();
  if (!in) return in.error();
  if (!call.input.empty() && ::write(in->write.get(), call.input.data(), call.input.size()) !=
                                 static_cast<ssize_t>(call.input.size())) {
    return Error{Code::Failed, errno_text("preparing a program's input")};
  }
  in->write.reset();
  const MonoTime until = SystemClock().mono() + call.limit;
  const auto child =
      spawn(call, {.in = in->read.get(), .out = out->write.get(), .talk = talk->write.get()});
  if (!child) return child.error();
  out->write.reset();
  talk->write.reset();
  ProgramEnd end;
  const bool ended =
      listen(*child, {{out->read.get(), &end.out}, {talk->read.get(), &end.talk}}, until);
  if (!ended) ::kill(-*child, SIGKILL);
  int status = 0;
  while (::waitpid(*child, &status, 0) < 0 && errno == EINTR) {
  }
  if (!ended) {
    return Error{Code::UnknownOutcome, cat(quoted(call.argv.front()), " did not end within ",
                                           format_duration(call.limit), " and was killed")};
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
