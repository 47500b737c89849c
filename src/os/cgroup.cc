#include "os/cgroup.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <vector>

#include "base/text.h"
#include "os/fd.h"
#include "os/files.h"

namespace stint::os {
namespace {

// Without /proc: whether we are in the group that is mounted here. A namespace of groups shows its
// own root there.
bool lists_us(const std::string& members) {
  const auto text = read_file(members, 1U << 20U);
  const auto lines = text ? split(*text, '\n') : std::vector<std::string_view>();
  return std::ranges::find(lines, std::to_string(::getpid())) != lines.end();
}

// "0::/user.slice/..." in /proc/self/cgroup names our place in the v2 hierarchy; "self" is
// ourselves also in another's /proc.
std::optional<std::string> own_path() {
  const auto text = read_file("/proc/self/cgroup", 64U << 10U);
  if (!text) return std::nullopt;
  for (const std::string_view line : split(*text, '\n')) {
    if (line.starts_with("0::")) return std::string(line.substr(3));
  }
  return std::nullopt;
}

bool write_text(const char* path, std::string_view text) {
  const Fd file(::open(path, O_WRONLY | O_CLOEXEC));
  return file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

}  // namespace

Cgroup::Cgroup(std::string path)
    : path_(std::move(path)), kill_(path_ + "/cgroup.kill"), members_(path_ + "/cgroup.procs") {}

std::optional<Cgroup> Cgroup::make(const std::string& name) {
  const auto here = own_path();
  // All v2, or v2 beside v1 ("hybrid").
  for (const char* mount : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}) {
    if (!here && !lists_us(cat(mount, "/cgroup.procs"))) continue;
    const std::string parent = cat(mount, !here || *here == "/" ? "" : *here);
    if (!exists(parent + "/cgroup.procs") || !exists(parent + "/cgroup.subtree_control")) continue;
    Cgroup group(cat(parent, "/", name));
    if (::mkdir(group.path_.c_str(), 0755) != 0) return std::nullopt;
    if (exists(group.kill_)) return group;
    group.remove();
    return std::nullopt;
  }
  return std::nullopt;
}

namespace {

// A fork copies our page tables, and both sides then copy pages. glibc has vfork() without a group,
// and clone() without clone3(): so by hand, on a stack of its own. The sanitizers know fork()
// alone.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
pid_t clone_and_call(clone_args& arguments, void (*main)(void*), void* argument,
                     std::size_t stack) {
  constexpr std::size_t kPage = 4096;
  stack = (stack + kPage - 1) / kPage * kPage;
  void* const memory = ::mmap(nullptr, stack, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return -1;
  arguments.flags |= CLONE_VM | CLONE_VFORK;
  arguments.stack = reinterpret_cast<std::uint64_t>(memory);
  arguments.stack_size = stack;
  long answer = SYS_clone3;
  asm volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "mov %[argument], %%rdi\n\t"  // the child, on its own stack
      "call *%[main]\n\t"
      "hlt\n"
      "1:"
      : "+a"(answer)
      : "D"(&arguments), "S"(sizeof arguments), [main] "r"(main), [argument] "r"(argument)
      : "rcx", "r11", "memory", "cc");
  ::munmap(memory, stack);
  if (answer < 0) {
    errno = static_cast<int>(-answer);
    return -1;
  }
  return static_cast<pid_t>(answer);
}
#else
pid_t clone_and_call(clone_args& arguments, void (*main)(void*), void* argument, std::size_t) {
  const auto child = static_cast<pid_t>(::syscall(SYS_clone3, &arguments, sizeof arguments));
  if (child == 0) main(argument);
  return child;
}
#endif

}  // namespace

pid_t Cgroup::spawn_into(void (*main)(void*), void* argument, std::size_t stack) const {
  const Fd directory(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory) return -1;
  clone_args arguments{};
  arguments.flags = CLONE_INTO_CGROUP;
  arguments.exit_signal = SIGCHLD;
  arguments.cgroup = static_cast<std::uint64_t>(directory.get());
  return clone_and_call(arguments, main, argument, stack);
}

void Cgroup::enter() const { write_text(members_.c_str(), "0"); }

void Cgroup::kill_all() const { write_text(kill_.c_str(), "1"); }

bool Cgroup::populated() const {
  const auto events = read_file(path_ + "/cgroup.events", 4096);
  return events && events->find("populated 1") != std::string::npos;
}

void Cgroup::remove() const { ::rmdir(path_.c_str()); }

}  // namespace stint::os
