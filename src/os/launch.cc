#include "os/launch.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/text.h"
#include "os/begin.h"
#include "os/exec_words.h"
#include "os/pause.h"

namespace stint::os {
namespace {

Error not_started(const Launch& launch, int error) {
  return {Code::Failed, cat("starting ", quoted(launch.argv.front()), ": ", std::strerror(error))};
}

// What the helper says: whether the program could be started (errno), and how it ended.
struct Report {
  int number;
};

bool say(int fd, int number) {
  const Report report{number};
  return ::write(fd, &report, sizeof report) == static_cast<ssize_t>(sizeof report);
}

// Empty: the helper is gone, and has said nothing.
std::optional<int> hear(int fd) {
  Report report{-1};
  ssize_t got = 0;
  do {
    got = ::read(fd, &report, sizeof report);
  } while (got < 0 && errno == EINTR);
  return got == static_cast<ssize_t>(sizeof report) ? std::optional(report.number) : std::nullopt;
}

struct HelperDuty {
  const Launch& launch;
  char* const* argv;
  char* const* envp;
  int report;
};

// In the child of a process that may have many threads: nothing but system calls from here on.
[[noreturn]] void become(const HelperDuty& duty, volatile int& error) {
  if (duty.launch.in >= 0) ::dup2(duty.launch.in, STDIN_FILENO);
  if (duty.launch.out >= 0) ::dup2(duty.launch.out, STDOUT_FILENO);
  if (duty.launch.talk >= 0) ::dup2(duty.launch.talk, STDERR_FILENO);
  make_standard_descriptors();
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execvpe(duty.argv[0], duty.argv, duty.envp);
  error = errno;
  ::_exit(127);
}

// The host's files are not the helper's: a lock or a connection would live as long as it does.
void close_all_but(int kept) {
  if (kept > 0 && ::syscall(SYS_close_range, 0U, static_cast<unsigned>(kept) - 1, 0U) == 0 &&
      ::syscall(SYS_close_range, static_cast<unsigned>(kept) + 1, ~0U, 0U) == 0)
    return;
  rlimit limit{};
  constexpr rlim_t kMost = 65536;
  ::getrlimit(RLIMIT_NOFILE, &limit);
  for (int fd = 0; fd < static_cast<int>(std::min(limit.rlim_cur, kMost)); ++fd) {
    if (fd != kept) ::close(fd);
  }
}

[[noreturn]] void help(const HelperDuty& duty) {
  duty.launch.session ? static_cast<void>(::setsid()) : static_cast<void>(::setpgid(0, 0));
  ::signal(SIGCHLD, SIG_DFL);
  volatile int error = 0;
  const pid_t child = ::vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork)
  if (child == 0) become(duty, error);
  if (child < 0) error = errno;
  close_all_but(duty.report);
  if (!say(duty.report, error) || child < 0) ::_exit(1);
  int status = 0;
  pid_t seen = 0;
  do {
    seen = ::waitpid(child, &status, 0);
  } while (seen < 0 && errno == EINTR);
  ::_exit(seen == child && say(duty.report, status) ? 0 : 1);
}

// As fork(), but no signal tells of its end, and waitpid(-1) elsewhere in the process passes it
// over. The sanitizers know fork() alone.
pid_t fork_helper() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return ::fork();
#else
  return static_cast<pid_t>(::syscall(SYS_clone, 0, 0, 0, 0, 0));
#endif
}

}  // namespace

Result<Launched> Launched::start(const Launch& launch) {
  return children_are_ours() ? start_child(launch) : start_helper(launch);
}

Result<Launched> Launched::start_child(const Launch& launch) {
  std::vector<std::string> words = launch.argv;
  std::vector<std::string> entries = launch.environment;
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_setsigmask(&attributes, &none);
  // A session of its own has no terminal, so that nothing in it can ask there.
  posix_spawnattr_setflags(
      &attributes,
      static_cast<short>(POSIX_SPAWN_SETSIGMASK |
                         (launch.session ? POSIX_SPAWN_SETSID : POSIX_SPAWN_SETPGROUP)));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const auto& [from, to] : {std::pair{launch.in, STDIN_FILENO},
                                 {launch.out, STDOUT_FILENO},
                                 {launch.talk, STDERR_FILENO}}) {
    if (from >= 0) posix_spawn_file_actions_adddup2(&actions, from, to);
  }
  Launched out;
  const int failed = ::posix_spawnp(&out.pid_, words.front().c_str(), &actions, &attributes,
                                    exec_words(words).data(), exec_words(entries).data());
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) return not_started(launch, failed);
  out.watch_.emplace(out.pid_);
  return out;
}

Result<Launched> Launched::start_helper(const Launch& launch) {
  auto pipe = make_pipe();
  if (!pipe) return pipe.error();
  std::vector<std::string> words = launch.argv;
  std::vector<std::string> entries = launch.environment;
  const std::vector<char*> argv = exec_words(words);
  const std::vector<char*> envp = exec_words(entries);
  const HelperDuty duty{launch, argv.data(), envp.data(), pipe->write.get()};
  // No handler of the host's runs in the helper.
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  Launched out;
  out.pid_ = fork_helper();
  if (out.pid_ == 0) help(duty);
  const int failed = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (out.pid_ < 0) return not_started(launch, failed);
  pipe->write.reset();
  out.report_ = std::move(pipe->read);
  const auto error = hear(out.report_.get());
  if (error == 0) return out;
  out.report_.reset();
  ::waitpid(out.pid_, nullptr, __WALL);
  if (error) return not_started(launch, *error);
  return Error{Code::UnknownOutcome,
               cat("starting ", quoted(launch.argv.front()), ": the helper process was killed")};
}

std::vector<bool> Launched::wait(std::vector<int> fds, std::optional<MonoTime> until) const {
  if (watch_) return watch_->wait(std::move(fds), until);
  fds.push_back(report_.get());
  return wait_readable(fds, until);
}

void Launched::kill() const { ::kill(-pid_, SIGKILL); }

std::optional<End> Launched::end() {
  if (watch_) return end_of(pid_);
  const auto status = hear(report_.get());
  ::waitpid(pid_, nullptr, __WALL);
  return status ? std::optional(End::of(*status)) : std::nullopt;
}

}  // namespace stint::os
