#include "os/tree.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <new>

#include "base/check.h"
#include "base/text.h"
#include "os/clock.h"
#include "os/descendants.h"
#include "os/guardian.h"
#include "os/pause.h"
#include "os/sandbox.h"

namespace stint::os {
namespace {

constexpr Millis kStartPatience{1000};
constexpr Millis kStartRound{1};
// A guardian that is asked to kill does so within one; this is for a machine that is busy.
constexpr int kMostUnanswered = 8;
constexpr int kLeavingRounds = 50;

// The guardian of the tree before has seen it empty, and is on its way out.
std::atomic<pid_t> leaving_guardian = 0;

void see_off_guardian() {
  const pid_t guardian = leaving_guardian.exchange(0);
  for (int i = 0; guardian > 0 && i < kLeavingRounds; ++i) {
    if (::waitpid(guardian, nullptr, WNOHANG) != 0) return;
    pause_for(kStartRound);
  }
}

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
  tree->adopts_ = become_subreaper();
  see_off_guardian();
  tree->mixed_ = has_children();
  if (tree->mixed_ && look_at_proc() == Proc::Ours) tree->strangers_ = own_children();
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
  return {};
}

Tree::~Tree() {
  if (shared_ == nullptr) return;
  shared_->finished = 1;
  if (shared_->empty != 0 && !guardian_gone_) leaving_guardian = guardian_;
  alive_.reset();
  if (group_) group_->remove();
  ::munmap(shared_, sizeof(Shared));
}

int Tree::fd() const { return event_.fd(); }

void Tree::set_kill_at(MonoTime at) { shared_->kill_at_ns = at.time_since_epoch().count(); }

pid_t Tree::child() const { return shared_->apart == 0 ? shared_->child.load() : 0; }

// Orphans of a dead guardian are our own children; so is the child itself then.
void Tree::reap_own(News& news) {
  while (true) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid <= 0) break;
    std::erase(strangers_, pid);
    if (pid == guardian_) guardian_gone_ = true;
    if (pid == child()) child_status_ = status;
  }
  if (!guardian_gone_) return;
  news.empty = !has_children() || only_strangers();
  // An orphan is nobody's then.
  if (!adopts_ && group_ && group_->populated()) news.empty = false;
}

bool Tree::only_strangers() const {
  if (strangers_.empty() || look_at_proc() != Proc::Ours) return false;
  return std::ranges::all_of(own_children(), [&](pid_t child) {
    return std::ranges::find(strangers_, child) != strangers_.end();
  });
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
  // Once it was reaped, its number may be another's.
  if (child() > 0 && shared_->exited == 0) ::kill(-child(), signal);
  if (shared_->apart != 0) ask_guardian(signal);
}

// How many living ones there are, or 1 where that cannot be seen.
std::size_t Tree::signal_work(int signal) const {
  if (guardian_gone_) return signal_orphans(signal);
  if (can_walk()) return signal_descendants(guardian_, signal);
  ask_guardian(signal);
  return 1;
}

// Orphans of the guardian: below us now, and beside the strangers. Nobody is harmed by mistake:
// where they are one mixture, those of the work are left to the guards.
std::size_t Tree::signal_orphans(int signal) const {
  if (!mixed_ && can_walk()) return signal_descendants(::getpid(), signal);
  if (mixed_ && look_at_proc() != Proc::Ours) return has_children() ? 1 : 0;
  return signal_own_children(signal, strangers_);
}

void Tree::ask_guardian(int signal) const {
  if (guardian_gone_) return;
  shared_->asked |= std::uint64_t{1} << static_cast<unsigned>(signal);
  ::kill(guardian_, SIGCHLD);  // our child, and not reaped
}

// It is asked to kill; if it is stopped it is woken for that. A guardian that does not do so all
// the same is in the way.
void Tree::press_guardian() {
  const bool waits = (shared_->asked >> SIGKILL & 1U) != 0;
  unanswered_ = waits ? unanswered_ + 1 : 0;
  if (guardian_stopped()) ::kill(guardian_, SIGCONT);
  if (unanswered_ > kMostUnanswered && !mixed_) dismiss_guardian();
}

void Tree::signal_all(int signal) const { signal_work(signal); }

bool Tree::kill_round() {
  if (group_) group_->kill_all();
  if (!guardian_gone_ && !can_walk()) press_guardian();
  return signal_work(SIGKILL) == 0;
}

std::string Tree::survivors() const {
  if (look_at_proc() != Proc::Ours) return "processes that cannot be listed here";
  return describe_living(guardian_gone_ ? ::getpid() : guardian_);
}

void Tree::dismiss_guardian() {
  dismissed_ = true;
  if (!guardian_gone_) ::kill(guardian_, SIGKILL);
}

bool Tree::guardian_stopped() const { return !guardian_gone_ && stands_still(guardian_); }

void Tree::take_terminal() const {
  if (foreground_) ::tcsetpgrp(STDIN_FILENO, ::getpgrp());
}

void Tree::give_terminal() const {
  if (foreground_ && child() > 0) ::tcsetpgrp(STDIN_FILENO, child());
}

}  // namespace stint::os
