#include "holder/supervisor.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "base/text.h"
#include "os/clock.h"
#include "os/errand.h"
#include "os/pause.h"
#include "os/sandbox.h"

namespace stint::holder {
namespace {

constexpr Millis kKillRound{5};
constexpr Millis kWatchAfter{50};
constexpr Millis kThreadAgain{100};
// For the guardian, the watch, a timer, and to find and kill the tree: with fewer than these left
// nothing is started, since it might not be stopped.
constexpr std::size_t kSpareDescriptors = 12;
// What cannot be seen dead after this long is named and left to the guards.
constexpr Millis kKillPatience{5000};
// A lease that somebody else may already have is not worth a long goodbye.
constexpr Millis kLongestLostGrace{1000};

}  // namespace

Status check_sight(bool unsafe_tree, const std::function<void(const std::string&)>& say) {
  const os::Sight sight = os::sight_of_trees();
  if (sight == os::Sight::Whole) return {};
  if (sight == os::Sight::Top) {
    say("/proc does not show our processes: the work is ended from its first process down, and "
        "what detaches itself gets no SIGTERM before its SIGKILL");
    return {};
  }
  constexpr std::string_view kWhy =
      "what the work starts cannot be seen here and could outlive the lease (no /proc of our own, "
      "no cgroup, no subreaper)";
  if (!unsafe_tree) {
    return Error{Code::Failed, cat(kWhy, ": nothing was started; stint run --unsafe-tree goes on")};
  }
  say(cat(kWhy, ": going on all the same (--unsafe-tree)"));
  return {};
}

Supervisor::Supervisor(api::Leases& leases, const Clock& clock, os::Signals& signals,
                       Keeper& keeper, const SuperviseRequest& request,
                       std::vector<ResourceName> watched,
                       std::vector<std::unique_ptr<Watch>> watches)
    : leases_(leases),
      clock_(clock),
      signals_(signals),
      keeper_(keeper),
      request_(request),
      watched_(std::move(watched)),
      watches_(std::move(watches)) {}

Result<std::unique_ptr<os::Tree>> Supervisor::start_tree() {
  os::TreeOptions options;
  options.command = request_.command;
  options.environment = request_.environment;
  options.signal_mask = signals_.original_mask();
  options.kill_at = keeper_.state().kill_at;
  options.input = request_.input;
  options.temporary = request_.temporary;
  os::Fd output;
  os::Fd errors;
  if (request_.progress_on_output) {
    for (auto [end, to] : {std::pair{&output, STDOUT_FILENO}, std::pair{&errors, STDERR_FILENO}}) {
      auto pipe = os::make_pipe();
      if (!pipe) return pipe.error();
      *end = std::move(pipe->write);
      auto pump = os::Pump::start(std::move(pipe->read), to);
      if (!pump) return pump.error();
      pumps_.push_back(std::move(*pump));
    }
    options.output = output.get();
    options.errors = errors.get();
  }
  return os::Tree::start(options);
}

void Supervisor::watch_leases() {
  watch_from_.reset();
  for (const ResourceName& resource : watched_) {
    auto watch = leases_.watch(resource);
    // Without it a revocation is noticed at the next heartbeat.
    if (watch) watches_.push_back(std::move(*watch));
  }
  // What changed before the registration.
  ensure_thread();
  thread_->look_soon();
}

Result<RunEnd> Supervisor::run() {
  progress_seen_ = os::awake();
  const Nanos asleep = clock_.mono().time_since_epoch() - os::awake();
  // The guardian learns of a renewal from whoever was answered, not from the loop: that may be held
  // up, by a terminal that is stopped or a disk that is busy, while the lease is kept.
  auto thread = KeeperThread::make(
      keeper_, [this] { tree_->set_kill_at(keeper_.state().kill_at); },
      [this] {
        if (const auto by = keeper_.take_step()) request_.clock_stepped(*by);
      });
  if (!thread) return thread.error();
  thread_ = std::move(*thread);
  if (auto spare = os::spare_descriptors(kSpareDescriptors); !spare) return spare.error();
  auto tree = start_tree();
  if (!tree) return tree.error();
  tree_ = std::move(*tree);
  if (request_.started) request_.started();
  if (watches_.empty()) watch_from_ = clock_.mono() + kWatchAfter;
  on_tree();
  while (turn()) {
  }
  if (tree_) tree_->take_terminal();
  end_.seen_empty = end_.survivors.empty();
  end_.least_slack = keeper_.state().least_slack;
  end_.slept = clock_.mono().time_since_epoch() - os::awake() - asleep;
  return end_;
}

MonoTime Supervisor::next_wake() const {
  const KeeperState state = keeper_.state();
  MonoTime next = std::min(state.deadline, thread_due());
  switch (phase_) {
    case Phase::Running: break;
    case Phase::Stopping: next = kill_from_; break;
    case Phase::Killing: return clock_.mono() + kKillRound;
  }
  if (watch_from_) next = std::min(next, *watch_from_);
  if (request_.progress_timeout && phase_ == Phase::Running) {
    next =
        std::min(next, clock_.mono() + (progress_seen_ + *request_.progress_timeout - os::awake()));
  }
  return next;
}

void Supervisor::ensure_thread() {
  const Status started = thread_->start();
  if (!started && !thread_again_) {
    request_.say(cat(started.error().message, "; trying again until the deadline"));
  }
  thread_again_.reset();
  if (!started) thread_again_ = clock_.mono() + kThreadAgain;
}

// When the thread is wanted; never, if it runs.
MonoTime Supervisor::thread_due() const {
  if (thread_->started()) return MonoTime::max();
  return thread_again_.value_or(keeper_.next());
}

bool Supervisor::turn() {
  if (done_) return false;
  std::vector<int> fds = {signals_.fd(), tree_->fd(), thread_->fd()};
  for (const auto& watch : watches_) fds.push_back(watch->fd());
  const MonoTime next = next_wake();
  os::wait_readable(fds, next == MonoTime::max() ? std::nullopt : std::optional(next));
  on_signals();
  on_tree();
  if (done_) return false;
  on_leases();
  on_progress();
  on_time();
  return !done_;
}

void Supervisor::on_signals() {
  while (const auto received = signals_.take()) {
    if (received->number == SIGCHLD || received->number == SIGCONT) continue;
    if (request_.keeps_signal && request_.keeps_signal(received->number)) continue;
    const bool ends = received->number == SIGINT || received->number == SIGTERM ||
                      received->number == SIGQUIT || received->number == SIGHUP;
    if (ends) end_.told = received->number;
    if (ends && ++terminations_ > 1) {
      phase_ = Phase::Killing;
      give_up_at_ = clock_.mono() + kKillPatience;
      tree_->kill_round();
      continue;
    }
    tree_->pass_on(received->number);
  }
}

void Supervisor::on_tree() {
  const os::Tree::News news = tree_->look();
  if (news.exec_error != 0 && end_.how == RunEnd::How::Exited) {
    end_.how = RunEnd::How::NotExecuted;
    end_.exec_error = news.exec_error;
  }
  if (news.end) end_.child = news.end;
  const bool unguarded = news.guardian_gone && phase_ == Phase::Running;
  if (unguarded) {
    request_.say("the guardian process was killed: stopping the work");
    end_.how = RunEnd::How::Unguarded;
  }
  if (news.exited && phase_ == Phase::Running && end_.how == RunEnd::How::Exited) {
    judge_exit(news.overdue);
  }
  if (news.empty) {
    done_ = true;
    return;
  }
  if (unguarded) begin_stop(RunEnd::How::Unguarded, Millis(0));
  if (news.suspended && phase_ == Phase::Running) {
    tree_->take_terminal();
    os::stop_self();
    tree_->give_terminal();
    tree_->pass_on(SIGCONT);
  }
  // The child is gone but something that it started is not: it belongs to the work and ends with
  // it.
  if (news.exited && phase_ == Phase::Running) {
    begin_stop(end_.how, request_.settings.grace);
  }
}

// A child that is gone when the lease is too was ended for that, whoever saw it first: after a
// freeze the guardian may wake up before us.
void Supervisor::judge_exit(bool by_guardian) {
  const KeeperState state = keeper_.state();
  if (state.standing == KeeperState::Standing::Holding && !by_guardian) return;
  const bool lost = state.standing == KeeperState::Standing::Lost;
  end_.how = lost ? RunEnd::How::Lost : RunEnd::How::Overdue;
  end_.lost = state.lost;
  end_.lost_resource = state.lost_resource;
}

void Supervisor::on_leases() {
  if (watch_from_ && clock_.mono() >= *watch_from_) watch_leases();
  for (const auto& watch : watches_) {
    if (os::wait_readable({watch->fd()}, clock_.mono()).front()) {
      watch->acknowledge();
      ensure_thread();
      thread_->look_soon();
    }
  }
  if (clock_.mono() >= thread_due()) ensure_thread();
  thread_->acknowledge();
  const KeeperState state = keeper_.state();
  publish_deadline();
  if (state.unsure && !told_unsure_) {
    request_.say(
        cat("the store does not answer (", state.trouble, "); trying again until the deadline"));
  }
  told_unsure_ = state.unsure;
  if (phase_ == Phase::Killing) return;
  if (state.standing == KeeperState::Standing::Lost && !end_.lost) {
    end_.lost = state.lost;
    end_.lost_resource = state.lost_resource;
    begin_stop(RunEnd::How::Lost, std::min(request_.settings.grace, kLongestLostGrace));
  }
  if (state.standing == KeeperState::Standing::Overdue && end_.how != RunEnd::How::Overdue) {
    const Nanos left = state.kill_at - clock_.mono();
    begin_stop(RunEnd::How::Overdue, std::max(Millis(0), std::chrono::floor<Millis>(left)));
  }
}

void Supervisor::publish_deadline() {
  const KeeperState state = keeper_.state();
  if (state.deadline == published_) return;
  published_ = state.deadline;
  request_.deadline_moved(state.deadline);
}

void Supervisor::on_progress() {
  if (!request_.progress_timeout || phase_ != Phase::Running) return;
  const KeeperState state = keeper_.state();
  if (state.progress != progress_ || state.progress_at != progress_at_) {
    progress_ = state.progress;
    progress_at_ = state.progress_at;
    progress_seen_ = os::awake();
  }
  for (const auto& pump : pumps_) progress_seen_ = std::max(progress_seen_, pump->last_output());
  if (os::awake() < progress_seen_ + *request_.progress_timeout) return;
  begin_stop(RunEnd::How::Stalled, request_.settings.grace);
}

// First politely, to every process; then, when the grace is over, not.
void Supervisor::begin_stop(RunEnd::How how, Millis grace) {
  if (end_.how == RunEnd::How::Exited || end_.how == RunEnd::How::Stalled) end_.how = how;
  const MonoTime now = clock_.mono();
  const MonoTime from = now + grace;
  kill_from_ = phase_ == Phase::Stopping ? std::min(kill_from_, from) : from;
  phase_ = Phase::Stopping;
  if (grace.count() > 0) {
    tree_->signal_all(SIGTERM);
    // A stopped process takes no notice otherwise.
    tree_->signal_all(SIGCONT);
  }
  on_time();
}

void Supervisor::on_time() {
  const MonoTime now = clock_.mono();
  if (phase_ == Phase::Stopping && now >= kill_from_) {
    phase_ = Phase::Killing;
    give_up_at_ = now + kKillPatience;
  }
  // Nothing lives, but the guardian does not say so: it is stopped itself. Without it its dead
  // become ours, and with them the child's exit status.
  if (tree_->guardian_stopped() && tree_->survivors().empty()) tree_->dismiss_guardian();
  if (phase_ != Phase::Killing) return;
  tree_->kill_round();
  if (now < give_up_at_) return;
  end_.survivors = tree_->survivors();
  // The kernel says that there is one, and yet /proc shows none: another user's, under hidepid.
  if (end_.survivors.empty() && now >= give_up_at_ + kKillPatience)
    end_.survivors = "processes that cannot be seen here";
  done_ = !end_.survivors.empty();
}

}  // namespace stint::holder
