// The program that the plays of tests/sandbox start, linked statically so that it runs in an empty
// root:
//
//   player work FIFO KIND...          processes that ignore every polite signal; each says its KIND
//   player confine OPTION... -- CMD   runs CMD in a sandbox, with bystanders beside it
//
// Everything ends by itself after a minute, whatever a failed test leaves behind.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdarg>
#include <string>
#include <vector>

#include "tests/sandbox/seccomp.h"

namespace {

constexpr unsigned kLifetimeSeconds = 60;
constexpr unsigned kStrangerSeconds = 20;
constexpr int kCannot = 99;  // this machine does not let us build that sandbox

[[noreturn]] void die(const char* what) {
  ::dprintf(STDERR_FILENO, "player: %s: %s\n", what, ::strerror(errno));
  ::_exit(kCannot);
}

[[noreturn]] void sleep_on() {
  while (true) ::pause();
}

void live_on() {
  ::alarm(kLifetimeSeconds);
  for (const int number : {SIGHUP, SIGINT, SIGTERM, SIGQUIT}) ::signal(number, SIG_IGN);
}

// ---- work

int the_fifo = -1;

[[noreturn]] void say_and_stay(const char* kind) {
  live_on();
  ::dprintf(the_fifo, "%s\n", kind);
  sleep_on();
}

void* say_after_the_leader(void* told) {
  // The process is one without its first thread before the test hears of it.
  while (true) {
    char path[64];
    ::snprintf(path, sizeof path, "/proc/self/task/%d/stat", ::getpid());
    const int file = ::open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) break;  // no /proc to look at
    char text[256] = {};
    const ssize_t got = ::read(file, text, sizeof text - 1);
    ::close(file);
    const char* state = got > 0 ? ::strrchr(text, ')') : nullptr;
    if (state == nullptr || state[2] == 'Z') break;
    ::usleep(1000);
  }
  say_and_stay(static_cast<const char*>(told));
}

[[noreturn]] void without_first_thread(const char* kind) {
  live_on();
  pthread_t thread;
  if (::pthread_create(&thread, nullptr, say_after_the_leader, const_cast<char*>(kind)) != 0)
    die("pthread_create");
  ::pthread_exit(nullptr);
}

// Out of the group, the session, and the sight of its parent.
void detached(const char* kind, void (*then)(const char*)) {
  const pid_t middle = ::fork();
  if (middle == 0) {
    ::setsid();
    if (::fork() == 0) then(kind);
    ::_exit(0);
  }
  ::waitpid(middle, nullptr, 0);
}

void start(const std::string& kind) {
  if (kind == "detached") return detached("detached", say_and_stay);
  if (kind == "detached-leaderless") return detached("detached-leaderless", without_first_thread);
  if (::fork() != 0) return;
  if (kind == "root") {
    if (::setresuid(0, 0, 0) != 0) die("becoming root");
    say_and_stay("root");
  }
  if (kind == "plain") say_and_stay("plain");
  if (kind == "leaderless") without_first_thread("leaderless");
  if (kind == "session") {
    ::setsid();
    say_and_stay("session");
  }
  ::_exit(1);
}

int work(const std::vector<std::string>& words) {
  live_on();
  // Installed setuid it has root in hand, for the kind that asks for it.
  if (::geteuid() == 0 && ::getuid() != 0 && ::setresuid(::getuid(), ::getuid(), 0) != 0)
    die("dropping rights");
  the_fifo = ::open(words.at(0).c_str(), O_WRONLY | O_CLOEXEC);
  if (the_fifo < 0) die("opening the fifo");
  bool ends = false;
  bool first = false;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (words[i] == "ends") ends = true;  // the command itself; the others stay
    if (words[i] == "main") first = true;
    if (words[i] != "ends" && words[i] != "main") start(words[i]);
  }
  if (ends) return 0;
  if (first) without_first_thread("main");  // the command itself
  sleep_on();
}

// ---- confine

struct Plan {
  bool pid_namespace = false;
  bool everything = false;
  bool no_proc = false;
  bool hidepid = false;  // a /proc of its own, which shows each user only its own processes
  bool no_cgroup = false;
  bool foreign_proc = false;  // a new pid namespace, and bystanders where /proc shows our own
  bool same_number = false;   // as foreign_proc, and /proc/self is our number here too
  bool nobody = false;
  bool children = false;  // CMD finds the bystanders as its own children
  bool leave = false;     // the first process ends after CMD, and all others with it
  bool no_fork = false;   // CMD stays out of the new pid namespace: its children begin it
  std::string root;
  std::string report;
  stint::test::Refusals refusals;
  std::vector<char*> command;
};

Plan parse(const std::vector<std::string>& words, char** argv) {
  Plan plan;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--") {
      for (char** at = argv + i + 1; *at != nullptr; ++at) plan.command.push_back(*at);
      plan.command.push_back(nullptr);
      return plan;
    }
    if (word == "--pid")
      plan.pid_namespace = true;
    else if (word == "--everything")
      plan.everything = plan.pid_namespace = true;
    else if (word == "--no-proc")
      plan.no_proc = true;
    else if (word == "--hidepid")
      plan.hidepid = plan.pid_namespace = true;
    else if (word == "--no-cgroup")
      plan.no_cgroup = true;
    else if (word == "--foreign-proc")
      plan.foreign_proc = plan.pid_namespace = true;
    else if (word == "--same-number")
      plan.same_number = plan.pid_namespace = true;
    else if (word == "--nobody")
      plan.nobody = true;
    else if (word == "--children")
      plan.children = true;
    else if (word == "--leave")
      plan.leave = true;
    else if (word == "--no-fork")
      plan.no_fork = true;
    else if (word == "--root")
      plan.root = words.at(++i);
    else if (word == "--report")
      plan.report = words.at(++i);
    else if (word == "--refuse")
      plan.refusals.add(words.at(++i));
    else
      die(("unknown option " + word).c_str());
  }
  die("no command");
}

void mount_over(const char* path) {
  if (::mount("none", path, "tmpfs", 0, nullptr) != 0) die(path);
}

void set_up_mounts(const Plan& plan) {
  if (!plan.no_proc && !plan.no_cgroup && !plan.everything && !plan.hidepid) return;
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) die("private mounts");
  if (plan.everything && ::mount("proc", "/proc", "proc", 0, nullptr) != 0) die("a new /proc");
  if (plan.hidepid && ::mount("proc", "/proc", "proc", 0, "hidepid=2") != 0)
    die("a /proc that hides");
  if (plan.no_proc) mount_over("/proc");
  if (plan.no_cgroup) mount_over("/sys/fs/cgroup");
}

// As fork(), with the number that it is to have in our namespace (and outside, if not 0).
pid_t fork_as(pid_t inside, pid_t outside = 0) {
  struct {
    uint64_t flags, pidfd, child_tid, parent_tid, exit_signal, stack, stack_size, tls, set_tid,
        set_tid_size, cgroup;
  } arguments = {};
  const pid_t numbers[2] = {inside, outside};
  arguments.exit_signal = SIGCHLD;
  arguments.set_tid = reinterpret_cast<uint64_t>(numbers);
  arguments.set_tid_size = outside != 0 ? 2 : 1;
  const auto pid = static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof arguments));
  if (pid < 0 && errno != EEXIST) die("clone3 with a chosen number");
  return pid;  // -1: the number is taken
}

// Our number as /proc has it.
pid_t number_in_proc() {
  char text[32] = {};
  return ::readlink("/proc/self", text, sizeof text - 1) > 0 ? ::atoi(text) : 0;
}

std::vector<pid_t> bystanders;

// Returns the number of the new one in /proc.
pid_t add_bystander(pid_t number, bool stranger = false) {
  int ends[2];
  if (::pipe(ends) != 0) die("pipe");
  const pid_t pid = number != 0 ? fork_as(number) : ::fork();
  if (pid < 0) die("a bystander's number");
  if (pid == 0) {
    ::alarm(kLifetimeSeconds);  // and no signal is ignored: the politest one would be seen
    if (stranger) ::alarm(kStrangerSeconds);
    if (stranger) ::prctl(PR_SET_NAME, "stranger");
    if (!stranger) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::setpgid(0, 0);
    const pid_t there = number_in_proc();
    if (::write(ends[1], &there, sizeof there) != sizeof there) ::_exit(1);
    sleep_on();
  }
  pid_t there = 0;
  if (::read(ends[0], &there, sizeof there) != sizeof there) die("a bystander");
  ::close(ends[0]);
  ::close(ends[1]);
  bystanders.push_back(pid);
  return there;
}

[[noreturn]] void become(const Plan& plan) {
  if (!plan.root.empty() && (::chroot(plan.root.c_str()) != 0 || ::chdir("/") != 0)) die("chroot");
  if (plan.nobody &&
      (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0))
    die("becoming nobody");
  if (plan.children) {
    for (int i = 0; i < 3; ++i) add_bystander(0, true);
  }
  if (plan.no_fork && ::unshare(CLONE_NEWPID) != 0) die("a pid namespace");
  if (!plan.refusals.install()) die("seccomp");
  ::execvp(plan.command[0], plan.command.data());
  die(plan.command[0]);
}

int living_bystanders() {
  int living = 0;
  for (const pid_t pid : bystanders) {
    siginfo_t info = {};
    if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
        info.si_pid == 0)
      ++living;
  }
  return living;
}

pid_t start_command(const Plan& plan, pid_t top) {
  if (plan.foreign_proc) {
    // Each has the number that /proc gives to another descendant of `top`, and the command that of
    // `top` itself: whoever believes /proc ends them all.
    pid_t next = number_in_proc();
    for (int i = 0; i < 5; ++i) next = add_bystander(next);
    const pid_t pid = fork_as(top);
    if (pid == 0) become(plan);
    return pid;
  }
  if (plan.same_number) {
    // They have the numbers that /proc will give to the command's children.
    constexpr int kMany = 40;
    const pid_t from = add_bystander(0);
    for (int i = 1; i <= kMany; ++i) add_bystander(from + kMany + i);
    for (pid_t number = 32000;; --number) {
      const pid_t pid = fork_as(number, number);
      if (pid == 0) become(plan);
      if (pid > 0) return pid;
    }
  }
  for (int i = 0; i < 5; ++i) add_bystander(0);
  const pid_t pid = ::fork();
  if (pid == 0) become(plan);
  return pid;
}

// Stays after the command: with the first process of a pid namespace all others would go.
[[noreturn]] void keep(const Plan& plan, pid_t top) {
  set_up_mounts(plan);
  ::alarm(kLifetimeSeconds);
  const int report = ::open(plan.report.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (report < 0) die("the report");
  const pid_t pid = start_command(plan, top);
  if (pid < 0) die("fork");
  int status = 0;
  pid_t ended = 0;
  while ((ended = ::waitpid(pid, &status, 0)) < 0 && errno == EINTR) {
  }
  const int code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  ::dprintf(report, "exit %d, bystanders %d of %zu\n", code, living_bystanders(),
            bystanders.size());
  if (plan.leave) ::_exit(0);
  sleep_on();
}

void write_file(const char* path, const std::string& text) {
  const int file = ::open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0 || ::write(file, text.data(), text.size()) < 0) die(path);
  ::close(file);
}

// A plain user is root in a user namespace of its own, where it may do the rest.
void become_root() {
  const std::string user = std::to_string(::geteuid());
  const std::string group = std::to_string(::getegid());
  if (::unshare(CLONE_NEWUSER) != 0) die("a user namespace");
  write_file("/proc/self/setgroups", "deny");
  write_file("/proc/self/uid_map", "0 " + user + " 1");
  write_file("/proc/self/gid_map", "0 " + group + " 1");
}

int confine(const Plan& plan) {
  int flags = 0;
  if (plan.no_proc || plan.no_cgroup || plan.everything || plan.hidepid) flags |= CLONE_NEWNS;
  if (plan.pid_namespace) flags |= CLONE_NEWPID;
  if (plan.everything)
    flags |= CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWUTS | CLONE_NEWCGROUP | 0x80 /* NEWTIME */;
  const pid_t top = ::getpid();
  if ((flags != 0 || !plan.root.empty()) && ::geteuid() != 0) become_root();
  if (flags != 0 && ::unshare(flags) != 0) die("unshare");
  if (!plan.pid_namespace) keep(plan, top);
  const pid_t keeper = ::fork();
  if (keeper < 0) die("fork");
  if (keeper == 0) keep(plan, top);
  int status = 0;
  ::waitpid(keeper, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> words(argv + (argc < 2 ? argc : 2), argv + argc);
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "work") return work(words);
  if (what == "confine") return confine(parse(words, argv + 2));
  return 2;
}
