#include "os/tree.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <new>

#include "base/check.h"
#include "base/text.h"
#include "os/clock.h"
#include "os/descendants.h"
#include "os/guardian.h"
#include "os/lock_holder.h"
#include "os/pause.h"

namespace stint::os {
namespace {

constexpr Millis kStartPatience{1000};
constexpr Millis kStartRound{1};

}  // namespace

struct Tree::Shared : GuardianPage {};

Result<std::unique_ptr<Tree>> Tree::start(const TreeOptions& options) {
  std::unique_ptr<Tree> tree(new Tree());
  void* page =
      ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED)
    return Error{Code::Failed, errno_text("sharing memory with the guardian")};
  tree->shared_ = new (page) Shared();
  tree->set_kill_at(options.kill_at);
  tree->foreground_ = ::isatty(STDIN_FILENO) != 0 && ::tcgetpgrp(STDIN_FILENO) == ::getpgrp();
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (auto forked = tree->fork_guardian(options); !forked) return forked.error();
  return tree;
}

Status Tree::fork_guardian(const TreeOptions& options) {
  auto pipe = make_pipe();
  if (!pipe) return pipe.error();
  auto event = EventFd::make();
  if (!event) return event.error();
  event_ = std::move(*event);
  // No name that could meet another's: pid and boot time of this very moment.
  group_ = Cgroup::make(cat("stint-", ::getpid(), "-", shared_->kill_at_ns.load()));
  const GuardianDuty duty{.page = shared_,
                          .options = &options,
                          .supervisor = ::getpid(),
                          .alive_fd = pipe->read.get(),
                          .event_fd = event_.fd(),
                          .group = group_ ? &*group_ : nullptr,
                          .foreground = foreground_};
  guardian_ = ::fork();
  if (guardian_ < 0) return Error{Code::Failed, errno_text("starting the guardian")};
  if (guardian_ == 0) {
    // Its own copy of the writing end would keep the pipe open for ever.
    pipe->write.reset();
    guardian_main(duty);
  }
  alive_ = std::move(pipe->write);
  guardian_exit_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, guardian_, 0)));
  return {};
}

Tree::~Tree() {
  if (shared_ == nullptr) return;
  shared_->finished = 1;
  alive_.reset();
  if (group_) group_->remove();
  ::munmap(shared_, sizeof(Shared));
}

int Tree::fd() const { return event_.fd(); }

void Tree::set_kill_at(MonoTime at) { shared_->kill_at_ns = at.time_since_epoch().count(); }

// Orphans of a dead guardian are our own children; so is the child itself then.
void Tree::reap_own(News& news) {
  while (true) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid <= 0) {
      if (pid < 0 && errno == ECHILD && guardian_gone_) news.empty = true;
      return;
    }
    if (pid == guardian_) guardian_gone_ = true;
    if (pid == shared_->child) child_status_ = status;
  }
}

Tree::News Tree::look() {
  event_.drain();
  News news;
  reap_own(news);
  news.exec_error = shared_->exec_error;
  news.suspended = foreground_ && shared_->stopped != 0;
  if (shared_->exited != 0) child_status_ = shared_->wait_status;
  news.exited = child_status_.has_value();
  if (child_status_) news.end = End::of(*child_status_);
  if (shared_->empty != 0) news.empty = true;
  news.overdue = shared_->overdue != 0;
  news.guardian_gone = guardian_gone_ && !dismissed_ && shared_->empty == 0;
  return news;
}

void Tree::pass_on(int signal) const {
  // A signal that comes while the guardian still starts the child is not lost.
  const MonoTime until = SystemClock().mono() + kStartPatience;
  while (shared_->child == 0 && shared_->exec_error == 0 && SystemClock().mono() < until) {
    pause_for(kStartRound);
  }
  if (const pid_t child = shared_->child; child > 0) ::kill(-child, signal);
}

void Tree::signal_all(int signal) const { signal_descendants(::getpid(), guardian_, signal); }

bool Tree::kill_round() {
  if (group_) group_->kill_all();
  return signal_descendants(::getpid(), guardian_, SIGKILL) == 0;
}

std::string Tree::survivors() const { return describe_living(::getpid(), guardian_); }

void Tree::dismiss_guardian() {
  dismissed_ = true;
  ::kill(guardian_, SIGKILL);
}

bool Tree::guardian_stopped() const {
  const char state = process_state(guardian_);
  return state == 'T' || state == 't';
}

void Tree::take_terminal() const {
  if (foreground_) ::tcsetpgrp(STDIN_FILENO, ::getpgrp());
}

void Tree::give_terminal() const {
  if (foreground_ && shared_->child > 0) ::tcsetpgrp(STDIN_FILENO, shared_->child);
}

}  // namespace stint::os
