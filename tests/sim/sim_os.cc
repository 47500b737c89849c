#include "tests/sim/sim_os.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include "base/check.h"
#include "os/clock.h"
#include "os/fd.h"
#include "os/pause.h"
#include "os/random.h"
#include "os/signals.h"
#include "tests/sim/sim_disk.h"

namespace stint::test {
namespace {

// No real descriptor is that high.
constexpr int kFirstFd = 1 << 28;
SimOs* present_os = nullptr;

}  // namespace

SimOs::SimOs(Scheduler& scheduler) : scheduler_(scheduler), last_fd_(kFirstFd) {
  CHECK(present_os == nullptr, "one simulation at a time");
  present_os = this;
}
SimOs::~SimOs() { present_os = nullptr; }

SimOs& SimOs::present() {
  CHECK(present_os != nullptr, "outside of a simulation");
  return *present_os;
}

void SimOs::install(const std::string& command, SimProgram program) {
  programs_[command] = std::move(program);
}
const SimProgram& SimOs::program(const std::string& command) const { return programs_.at(command); }

void SimOs::terminate(SimProcess& process) {
  const auto found = signals_.find(&process);
  if (found == signals_.end() || process.dead) return;
  process.signals = 1;
  signal(found->second);
}

int SimOs::open_event() {
  events_[++last_fd_] = {};
  return last_fd_;
}
void SimOs::close(int fd) {
  // The files of the program itself (a deadline file at /dev/null) are real ones.
  if (fd < kFirstFd) {
    ::close(fd);
    return;
  }
  events_.erase(fd);
  SimDisk::present().close(fd);
}

void SimOs::signal(int fd) {
  const auto found = events_.find(fd);
  if (found == events_.end()) return;
  ++found->second.count;
  for (SimFiber* fiber : std::exchange(found->second.waiting, {})) scheduler_.wake(fiber);
}
void SimOs::drain(int fd) {
  if (const auto found = events_.find(fd); found != events_.end()) found->second.count = 0;
}
bool SimOs::readable(int fd) const {
  const auto found = events_.find(fd);
  return found != events_.end() && found->second.count > 0;
}

void SimOs::wait(const std::vector<int>& fds, std::optional<MonoTime> until) {
  if (!scheduler_.alive()) {
    scheduler_.process()->signals = 1;  // whatever it waits for: it ends
    scheduler_.give_way();
    return;
  }
  const SimClock& clock = scheduler_.process()->clock();
  const auto ready = [&] { return std::ranges::any_of(fds, [&](int fd) { return readable(fd); }); };
  while (!ready() && scheduler_.alive() && !(until && clock.mono() >= *until)) {
    for (const int fd : fds) {
      if (const auto found = events_.find(fd); found != events_.end()) {
        found->second.waiting.push_back(scheduler_.fiber());
      }
    }
    // A clock that was paused meanwhile has more to go than was thought: then it waits again.
    scheduler_.park(
        until ? std::optional(std::max(clock.true_time(*until), scheduler_.now() + Nanos(1)))
              : std::nullopt);
    for (const int fd : fds) {
      if (const auto found = events_.find(fd); found != events_.end()) {
        std::erase(found->second.waiting, scheduler_.fiber());
      }
    }
  }
}

}  // namespace stint::test

// ---- instead of os/*.cc

namespace stint::os {

using test::Scheduler;
using test::SimOs;

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}
void Fd::reset() {
  if (fd_ >= 0) SimOs::present().close(fd_);
  fd_ = -1;
}

Result<Pipe> make_pipe() { return Error{Code::Failed, "no pipes in the simulation"}; }
Result<EventFd> EventFd::make() { return EventFd(); }
EventFd::EventFd() : fd_(SimOs::present().open_event()) {}
void EventFd::signal() { SimOs::present().signal(fd_.get()); }
void EventFd::drain() { SimOs::present().drain(fd_.get()); }
Status spare_descriptors(std::size_t /*count*/) { return {}; }
std::string errno_text(std::string_view doing) { return std::string(doing); }

void pause_for(Nanos length) { Scheduler::present().interleave(length); }

std::vector<bool> wait_readable(const std::vector<int>& fds, std::optional<MonoTime> until) {
  SimOs& os = SimOs::present();
  os.wait(fds, until);
  std::vector<bool> ready;
  for (const int fd : fds) ready.push_back(os.readable(fd));
  return ready;
}

std::uint64_t SystemRandom::next() { return Scheduler::present().random().next(); }

MonoTime SystemClock::mono() const { return Scheduler::present().process()->clock().mono(); }
WallTime SystemClock::wall() const { return Scheduler::present().process()->clock().wall(); }
Nanos awake() { return SystemClock().mono().time_since_epoch(); }
ClockName clock_name() { return {"boot", "time", "machine"}; }

Result<Signals> Signals::make() {
  Signals signals;
  signals.fd_ = Fd(SimOs::present().open_event());
  SimOs::present().expect_signals(*Scheduler::present().process(), signals.fd_.get());
  return signals;
}
// Those who die are told, and proxies that are to stop.
std::optional<Signals::Received> Signals::take() {
  SimOs::present().drain(fd_.get());
  test::SimProcess* process = Scheduler::present().process();
  if (process->signals == 0) return std::nullopt;
  process->signals = 0;
  return Received{SIGTERM, false};
}

// ---- a child, and its guardian, which is a process of its own

struct Tree::Shared {
  test::SimProcess* child = nullptr;
  MonoTime kill_at{};
  bool escaped = false;
  bool running = true;
  bool over = false;  // nobody supervises any more
  bool overdue = false;
  int status = 0;
  int event = -1;     // for the supervisor
  int guardian = -1;  // wakes the guardian
};

Result<std::unique_ptr<Tree>> Tree::start(const TreeOptions& options) {
  SimOs& os = SimOs::present();
  Scheduler& scheduler = os.scheduler();
  const test::SimProgram& program = os.program(options.command.front());
  std::unique_ptr<Tree> tree(new Tree());
  auto shared = std::make_shared<Shared>();
  tree->shared_ = shared.get();
  os.keep(shared);
  shared->kill_at = options.kill_at;
  shared->event = os.open_event();
  shared->guardian = os.open_event();
  tree->event_ = EventFd(Fd(shared->event));
  test::SimProcess& parent = *scheduler.process();
  if (!scheduler.alive()) {
    shared->running = false;
    return tree;
  }
  shared->escaped = program.escapes();
  shared->child = &scheduler.start_once(
      *parent.machine, parent.name + "/child",
      [shared, options, &scheduler, main = program.main] {
        const int code = main(options, shared->escaped);
        shared->status = scheduler.alive() ? code << 8 : SIGKILL;
      },
      [shared, &os] {
        shared->running = false;
        os.signal(shared->event);
        os.signal(shared->guardian);
      });
  scheduler.start_once(
      *parent.machine, parent.name + "/guardian",
      [shared, &os, &scheduler] {
        while (shared->running && scheduler.alive()) {
          const MonoTime now = scheduler.process()->clock().mono();
          const bool ends = !shared->escaped && (shared->over || now >= shared->kill_at);
          if (ends) {
            shared->overdue = !shared->over;
            scheduler.kill(*shared->child, Nanos(0));
          }
          os.drain(shared->guardian);
          os.wait({shared->guardian},
                  ends || shared->escaped ? std::nullopt : std::optional(shared->kill_at));
        }
      },
      [] {});
  return tree;
}

Tree::~Tree() {
  shared_->over = true;
  SimOs::present().signal(shared_->guardian);
}

int Tree::fd() const { return shared_->event; }

Tree::News Tree::look() {
  event_.drain();
  News news;
  const bool gone = !shared_->running || shared_->escaped || !Scheduler::present().alive();
  news.exited = gone;
  news.empty = gone;
  news.overdue = shared_->overdue;
  news.end = End::of(shared_->running ? 0 : shared_->status);
  return news;
}

void Tree::set_kill_at(MonoTime at) {
  shared_->kill_at = at;
  SimOs::present().signal(shared_->guardian);
}
void Tree::pass_on(int /*signal*/) const {}
void Tree::signal_all(int /*signal*/) const {}
bool Tree::kill_round() {
  if (shared_->running && !shared_->escaped && Scheduler::present().alive()) {
    Scheduler::present().kill(*shared_->child, Nanos(0));
  }
  return !shared_->running || shared_->escaped;
}
std::string Tree::survivors() const {
  return shared_->running && !shared_->escaped ? "the child" : "";
}
void Tree::dismiss_guardian() {}
bool Tree::guardian_stopped() const { return false; }
void Tree::take_terminal() const {}
void Tree::give_terminal() const {}

}  // namespace stint::os

// ---- threads are fibers

void std::thread::_M_start_thread(_State_ptr state, void (* /*depend*/)()) {
  const std::shared_ptr<_State> shared(std::move(state));
  _M_id = id(stint::test::Scheduler::present().start_thread([shared] { shared->_M_run(); }));
}

void std::thread::join() {
  stint::test::Scheduler::present().join(native_handle());
  _M_id = id();
}

extern "C" int pthread_setname_np(pthread_t /*thread*/, const char* /*name*/) noexcept { return 0; }
