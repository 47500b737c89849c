#include "os/guardian.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <vector>

#include "os/cgroup.h"
#include "os/clock.h"
#include "os/descendants.h"
#include "os/fd.h"
#include "os/lock_holder.h"
#include "os/pause.h"
#include "os/sandbox.h"
#include "os/tree.h"

namespace stint::os {
namespace {

// How long a supervisor that is in others' way may still be stopped after the tree was killed.
constexpr std::int64_t kPatienceNs = 1'000'000'000;
constexpr Nanos kRound{2'000'000};
constexpr int kLookEveryMs = 5;  // where orphans are not ours, nothing tells of their end
constexpr std::size_t kChildStack = 256U << 10U;

std::int64_t now_ns() { return SystemClock().mono().time_since_epoch().count(); }

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  // exec takes char* for history's sake and changes nothing.
  for (const std::string& s : strings) out.push_back(const_cast<char*>(s.c_str()));  // NOLINT
  out.push_back(nullptr);
  return out;
}

// Runs in the new child, which may share the guardian's memory: it only makes system calls.
[[noreturn]] void become_child(const GuardianDuty& duty, char* const* argv, char* const* envp,
                               bool joins) {
  const TreeOptions& options = *duty.options;
  if (joins && duty.group != nullptr) duty.group->enter();
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::setpgid(0, 0);
  if (duty.foreground) ::tcsetpgrp(STDIN_FILENO, ::getpid());
  if (options.input >= 0) ::dup2(options.input, STDIN_FILENO);
  if (options.output >= 0) ::dup2(options.output, STDOUT_FILENO);
  if (options.errors >= 0) ::dup2(options.errors, STDERR_FILENO);
  ::sigprocmask(SIG_SETMASK, &options.signal_mask, nullptr);
  // Whoever was stopped on the way here may have lost the lease meanwhile.
  if (now_ns() >= duty.page->kill_at_ns) {
    duty.page->overdue = 1;
    ::_exit(127);
  }
  ::execvpe(argv[0], argv, envp);
  duty.page->exec_error = errno;
  ::_exit(127);
}

struct ChildWords {
  const GuardianDuty& duty;
  char* const* argv;
  char* const* envp;
};

void spawn_child(const GuardianDuty& duty) {
  const std::vector<char*> argv = pointers(duty.options->command);
  const std::vector<char*> envp = pointers(duty.options->environment);
  ChildWords words{duty, argv.data(), envp.data()};
  const auto main = [](void* told) {
    const auto& child = *static_cast<const ChildWords*>(told);
    become_child(child.duty, child.argv, child.envp, false);
  };
  // execvpe() copies argv to its stack when it finds a script without a first line.
  const std::size_t stack = kChildStack + argv.size() * sizeof(char*);
  pid_t child = duty.group != nullptr ? duty.group->spawn_into(main, &words, stack) : -1;
  // vfork: half the cost of fork, and the child makes nothing but system calls before it executes.
  if (child < 0) child = ::vfork();  // NOLINT(clang-analyzer-security.insecureAPI.vfork)
  if (child == 0) become_child(duty, argv.data(), envp.data(), true);
  if (child < 0) {
    duty.page->exec_error = errno;
    return;
  }
  // The child does so too; whoever comes first, its group is there before anybody can signal it.
  ::setpgid(child, child);
  duty.page->child = child;
}

class Guardian {
 public:
  explicit Guardian(const GuardianDuty& duty) : duty_(duty), page_(*duty.page) {}

  // Before the work starts: a guardian that cannot see must not let it.
  bool open_descriptors() {
    sigset_t chld;
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    ::sigprocmask(SIG_BLOCK, &chld, nullptr);
    signals_ = ::signalfd(-1, &chld, SFD_CLOEXEC | SFD_NONBLOCK);
    timer_ = ::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    return signals_ >= 0 && timer_ >= 0;
  }

  [[noreturn]] void watch() {
    while (true) {
      arm();
      std::array<pollfd, 3> polled = {
          {{signals_, POLLIN, 0}, {duty_.alive_fd, POLLIN, 0}, {timer_, POLLIN, 0}}};
      if (::poll(polled.data(), polled.size(), adopts_ ? -1 : kLookEveryMs) < 0 && errno != EINTR)
        end_all();
      if (polled[0].revents != 0) drain_signals();
      if (reap()) leave();
      do_as_asked();
      if (polled[1].revents != 0) supervisor_gone();
      if (now_ns() >= page_.kill_at_ns) overdue();
    }
  }

 private:
  // Boot time: a suspend past the deadline ends the work at the wake-up, not a ttl later.
  void arm() const {
    const std::int64_t at = std::max<std::int64_t>(page_.kill_at_ns, 1);
    itimerspec spec{};
    spec.it_value.tv_sec = at / 1'000'000'000;
    spec.it_value.tv_nsec = at % 1'000'000'000;
    ::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &spec, nullptr);
  }

  void drain_signals() const {
    signalfd_siginfo info{};
    while (::read(signals_, &info, sizeof info) == sizeof info) {
    }
  }

  void tell() const {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(duty_.event_fd, &one, sizeof one);
  }

  // Everybody whose parent died becomes our child: when there is none left, the tree is empty.
  bool reap() {
    bool news = false;
    while (true) {
      int status = 0;
      const pid_t pid = ::waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);
      if (pid == 0 || (pid < 0 && errno != ECHILD)) break;
      if (pid < 0) {
        // An orphan is nobody's then; only the group still has it.
        if (!adopts_ && duty_.group != nullptr && duty_.group->populated()) {
          duty_.group->kill_all();
          break;
        }
        page_.empty = 1;
        tell();
        return true;
      }
      if (pid != page_.child) continue;
      news = true;
      if (WIFSTOPPED(status)) {
        page_.stopped = 1;
      } else if (WIFCONTINUED(status)) {
        page_.stopped = 0;
      } else {
        page_.wait_status = status;
        page_.exited = 1;
      }
    }
    if (news) tell();
    return false;
  }

  [[noreturn]] void leave() const {
    // With the supervisor gone the group is ours to remove.
    if (alone_ && duty_.group != nullptr) duty_.group->remove();
    if (alone_) {
      for (const std::string& path : duty_.options->temporary) ::unlink(path.c_str());
    }
    ::_exit(0);
  }

  // Nobody but us reaps our children: while they are not reaped, their numbers are theirs, and so
  // is that of the child's group.
  void signal_work(int signal) const {
    if (can_walk()) {
      signal_descendants(::getpid(), signal);
      return;
    }
    const pid_t child = page_.exited == 0 ? page_.child.load() : 0;
    const bool grouped = child > 0 && ::getpgid(child) == child;
    if (grouped) ::kill(-child, signal);
    signal_own_children(signal, grouped ? std::vector{child} : std::vector<pid_t>{});
  }

  void do_as_asked() const {
    const std::uint64_t asked = page_.asked.exchange(0);
    for (int signal = 1; asked >> signal != 0 && signal < 63; ++signal) {
      if ((asked >> signal & 1U) != 0) signal_work(signal);
    }
  }

  void kill_round() const {
    page_.asked = 0;  // this is more
    if (duty_.group != nullptr) duty_.group->kill_all();
    signal_work(SIGKILL);
  }

  // Only while it is our parent, so that its number is its own. It is ended only if it can be held
  // by a descriptor, for it may end right here.
  void signal_supervisor(int signal) const {
    const Fd held(static_cast<int>(::syscall(SYS_pidfd_open, duty_.supervisor, 0)));
    if (::getppid() != duty_.supervisor) return;
    if (held && ::syscall(SYS_pidfd_send_signal, held.get(), signal, nullptr, 0) == 0) return;
    if (signal == SIGCONT) ::kill(duty_.supervisor, SIGCONT);
  }

  void supervisor_gone() {
    if (page_.finished != 0) ::_exit(0);
    end_all();
  }

  // Kills until nothing is left; what cannot be killed is left to the kernel and to the guards.
  [[noreturn]] void end_all() {
    alone_ = true;
    while (true) {
      kill_round();
      if (reap()) leave();
      pause_for(kRound);
    }
  }

  // The supervisor should have done this. If it is stopped it is woken, to see that all is over and
  // to say so with its 75: whoever waits for it would wait for ever. One that cannot be woken and
  // was stopped with a lock in its hand (SQLite's, in the middle of a commit) is killed: nobody
  // could take over. It may just have been woken together with us, so not at once.
  void overdue() {
    const std::int64_t since = now_ns();
    while (now_ns() >= page_.kill_at_ns) {
      page_.overdue = 1;
      kill_round();
      const bool empty = reap();
      // Where it cannot be seen it may be stopped: to wake it does no harm.
      const bool seen = ::getppid() == duty_.supervisor && look_at_proc() == Proc::Ours;
      const char state = seen ? process_state(duty_.supervisor) : 'T';
      const bool stopped = state == 'T' || state == 't';
      const bool in_the_way = seen && stopped && holds_write_lock(duty_.supervisor);
      if (state == 'T' && (empty || in_the_way)) signal_supervisor(SIGCONT);
      if (empty && !in_the_way) leave();
      if (in_the_way && now_ns() - since > kPatienceNs) {
        alone_ = true;
        signal_supervisor(SIGKILL);
      }
      std::array<pollfd, 1> alive = {{{duty_.alive_fd, POLLIN, 0}}};
      if (::poll(alive.data(), 1, 0) > 0) supervisor_gone();
      pause_for(kRound);
    }
  }

  const GuardianDuty& duty_;
  GuardianPage& page_;
  int signals_ = -1;
  int timer_ = -1;
  const bool adopts_ = become_subreaper();
  bool alone_ = false;
};

// Kernels before 5.9, and sandboxes that forbid it, have no close_range(). A number beyond the
// bound was not opened by us: it is inherited, and the work has it too.
void close_between(unsigned first, unsigned last) {
  if (::close_range(first, last, 0) == 0) return;
  constexpr unsigned kBound = 65536;
  rlimit limit{};
  const bool told = ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < kBound;
  const unsigned most = told ? static_cast<unsigned>(limit.rlim_cur) : kBound;
  for (unsigned fd = first; fd <= std::min(last, most); ++fd) ::close(static_cast<int>(fd));
}

// The store's descriptors and everything else of the supervisor's are not ours.
void close_others(const GuardianDuty& duty) {
  std::array<int, 5> kept = {duty.alive_fd, duty.event_fd, duty.options->input,
                             duty.options->output, duty.options->errors};
  std::sort(kept.begin(), kept.end());
  unsigned from = STDERR_FILENO + 1;
  for (const int fd : kept) {
    if (fd < static_cast<int>(from)) continue;
    if (static_cast<unsigned>(fd) > from) close_between(from, static_cast<unsigned>(fd) - 1);
    from = static_cast<unsigned>(fd) + 1;
  }
  close_between(from, ~0U);
}

void close_streams(const GuardianDuty& duty) {
  if (duty.options->input >= 0) ::close(duty.options->input);
  if (duty.options->output >= 0) ::close(duty.options->output);
  if (duty.options->errors >= 0) ::close(duty.options->errors);
}

}  // namespace

void guardian_main(const GuardianDuty& duty) {
  // Out of the supervisor's group: what is sent to the group is meant for the work.
  ::setpgid(0, 0);
  ::prctl(PR_SET_NAME, "stint-guardian");
  close_others(duty);
  duty.page->apart = ::getppid() == duty.supervisor ? 0 : 1;
  Guardian guardian(duty);
  if (guardian.open_descriptors()) {
    spawn_child(duty);
  } else {
    duty.page->exec_error = errno;
  }
  close_streams(duty);
  guardian.watch();
}

}  // namespace stint::os
