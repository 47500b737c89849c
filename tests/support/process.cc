#include "tests/support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "base/check.h"
#include "base/text.h"
#include "os/clock.h"
#include "os/pause.h"

extern char** environ;

namespace stint::test {
namespace {

namespace fs = std::filesystem;

constexpr Nanos kFirstLook = Millis(1);
constexpr Nanos kLastLook = Millis(20);
constexpr int kNotStarted = 127;

std::vector<std::string> environment(const Command& command) {
  std::map<std::string, std::string> all;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string entry = *at;
    const auto equals = entry.find('=');
    if (equals != std::string::npos) all[entry.substr(0, equals)] = entry.substr(equals + 1);
  }
  for (const auto& [name, value] : command.env) {
    if (value) {
      all[name] = *value;
    } else {
      all.erase(name);
    }
  }
  std::vector<std::string> out;
  for (const auto& [name, value] : all) out.push_back(cat(name, '=', value));
  return out;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> out;
  for (std::string& s : strings) out.push_back(s.data());
  out.push_back(nullptr);
  return out;
}

os::Fd open_file(const std::string& path, int flags) {
  os::Fd fd(::open(path.c_str(), flags | O_CLOEXEC, 0600));
  CHECK(fd, "a file for a child's input or output cannot be opened");
  return fd;
}

// Everything that the child needs, made before the fork: after it only system calls are allowed,
// since the test may have threads.
struct Launch {
  std::string program;
  std::vector<char*> argv;
  std::vector<char*> envp;
  const char* cwd = nullptr;
  int in = -1;
  int out = -1;
  int err = -1;
  bool die_with_parent = false;
  int processor = -1;
};

[[noreturn]] void become(const Launch& launch) {
  ::setpgid(0, 0);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::signal(SIGPIPE, SIG_DFL);
  if (launch.die_with_parent) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (launch.processor >= 0) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(launch.processor), &one);
    ::sched_setaffinity(0, sizeof one, &one);
  }
  if (launch.cwd != nullptr && ::chdir(launch.cwd) != 0) ::_exit(kNotStarted);
  ::dup2(launch.in, 0);
  ::dup2(launch.out, 1);
  ::dup2(launch.err, 2);
  ::execve(launch.program.c_str(), launch.argv.data(), launch.envp.data());
  ::_exit(kNotStarted);
}

struct StatLine {
  char state = 0;
  pid_t parent = 0;
};

// The name in /proc/N/stat may hold anything, also brackets: what counts comes after the last one.
std::optional<StatLine> stat_line(const std::string& pid) {
  const std::string text = read_text(cat("/proc/", pid, "/stat"));
  const auto bracket = text.rfind(')');
  if (bracket == std::string::npos || bracket + 4 >= text.size()) return std::nullopt;
  StatLine line;
  line.state = text[bracket + 2];
  line.parent = static_cast<pid_t>(std::strtol(text.c_str() + bracket + 4, nullptr, 10));
  return line;
}

}  // namespace

MonoTime now() { return os::SystemClock().mono(); }

bool wait_until(const std::function<bool()>& condition, Millis deadline) {
  const MonoTime end = now() + deadline;
  Nanos look = kFirstLook;
  while (!condition()) {
    if (now() >= end) return condition();
    os::pause_for(look);
    look = std::min(look * 2, kLastLook);
  }
  return true;
}

TempDir::TempDir() {
  std::error_code error;
  path_ = (fs::temp_directory_path(error) / "stint-test-XXXXXX").string();
  CHECK(::mkdtemp(path_.data()) != nullptr, "no temporary folder can be made");
}

TempDir::~TempDir() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string TempDir::file(std::string_view name) const { return cat(path_, '/', name); }

void write_text(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream
      text;  // takes what there is also when reading fails: a process of /proc may go
  text << file.rdbuf();
  return text.str();
}

Child::Child(const Command& command) {
  CHECK(!command.argv.empty(), "a command needs a name");
  write_text(files_.file("in"), command.stdin_text);
  const os::Fd in = open_file(files_.file("in"), O_RDONLY);
  const os::Fd out = open_file(files_.file("out"), O_WRONLY | O_CREAT | O_APPEND);
  const os::Fd err = open_file(files_.file("err"), O_WRONLY | O_CREAT | O_APPEND);
  std::vector<std::string> argv = command.argv;
  std::vector<std::string> env = environment(command);
  Launch launch{.program = find_program(argv.front()),
                .argv = pointers(argv),
                .envp = pointers(env),
                .cwd = command.cwd.empty() ? nullptr : command.cwd.c_str(),
                .in = in.get(),
                .out = out.get(),
                .err = err.get(),
                .die_with_parent = command.die_with_parent,
                .processor = command.one_processor ? ::sched_getcpu() : -1};
  if (launch.program.empty()) {
    write_text(files_.file("err"), cat(argv.front(), ": not found\n"));
    exit_ = Exit{.code = kNotStarted};
    return;
  }
  pid_ = ::fork();
  CHECK(pid_ >= 0, "fork failed");
  if (pid_ == 0) become(launch);
  ::setpgid(pid_, pid_);  // also here: whoever is first, so that signal_group() finds it at once
  pidfd_ = os::Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  CHECK(pidfd_, "pidfd_open failed");
}

Child::~Child() {
  if (pid_ <= 0) return;
  signal_group(SIGKILL);
  signal_group(SIGCONT);
  if (!exit_) ::waitpid(pid_, nullptr, 0);
}

std::optional<Exit> Child::wait(Millis deadline) {
  if (exit_) return exit_;
  const MonoTime end = now() + deadline;
  while (true) {
    pollfd waited{pidfd_.get(), POLLIN, 0};
    const auto left = std::chrono::ceil<Millis>(end - now()).count();
    const int ready = ::poll(&waited, 1, static_cast<int>(std::max<std::int64_t>(left, 0)));
    if (ready > 0) break;
    if (ready == 0) return std::nullopt;
  }
  int status = 0;
  CHECK(::waitpid(pid_, &status, 0) == pid_, "the child was reaped by another");
  exit_.emplace();
  if (WIFEXITED(status)) exit_->code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) exit_->signal = WTERMSIG(status);
  return exit_;
}

void Child::signal(int number) const {
  if (pid_ > 0 && !exit_) ::kill(pid_, number);
}

void Child::signal_group(int number) const {
  if (pid_ > 0) ::kill(-pid_, number);
}

std::string Child::out() const { return read_text(files_.file("out")); }
std::string Child::err() const { return read_text(files_.file("err")); }

Finished run(const Command& command, Millis deadline) {
  const MonoTime begun = now();
  Child child(command);
  Finished done;
  auto exit = child.wait(deadline);
  if (!exit) {
    done.timed_out = true;
    child.signal_group(SIGKILL);
    exit = child.wait(Millis(10'000));
  }
  if (exit) {
    done.exit_code = exit->code;
    done.signal = exit->signal;
  }
  done.out = child.out();
  done.err = child.err();
  done.took = std::chrono::duration_cast<Millis>(now() - begun);
  return done;
}

char state_of(pid_t pid) {
  const auto line = stat_line(std::to_string(pid));
  return line ? line->state : '\0';
}

bool alive(pid_t pid) {
  const char state = state_of(pid);
  return state != '\0' && state != 'Z' && state != 'X';
}

std::vector<pid_t> descendants(pid_t pid) {
  std::multimap<pid_t, pid_t> children;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename().string();
    const auto number = parse_digits(name);
    if (!number) continue;
    if (const auto line = stat_line(name)) {
      children.emplace(line->parent, static_cast<pid_t>(*number));
    }
  }
  std::vector<pid_t> found{pid};
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto [first, last] = children.equal_range(found[i]);
    for (auto at = first; at != last; ++at) found.push_back(at->second);
  }
  found.erase(found.begin());
  return found;
}

std::string find_program(std::string_view name) {
  if (name.find('/') != std::string_view::npos) {
    return ::access(std::string(name).c_str(), X_OK) == 0 ? std::string(name) : std::string();
  }
  const char* path = ::getenv("PATH");
  for (const std::string_view folder : split(path == nullptr ? "/usr/bin:/bin" : path, ':')) {
    std::string candidate = cat(folder, '/', name);
    if (::access(candidate.c_str(), X_OK) == 0) return candidate;
  }
  return {};
}

}  // namespace stint::test
