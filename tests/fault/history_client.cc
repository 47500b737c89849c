#include "tests/fault/history_client.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <optional>
#include <thread>

#include "base/text.h"
#include "os/clock.h"
#include "os/pause.h"
#include "os/random.h"
#include "service/lease_service.h"
#include "tests/support/history_checker.h"

namespace stint::test {
namespace {

constexpr Millis kOpening(30'000);
constexpr Millis kSettling(20'000);

// A line in a file that the test reads at the end: a client has no other voice.
class Complaints {
 public:
  explicit Complaints(const std::string& path)
      : file_(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {}
  void add(std::string_view who, std::string_view what) {
    const std::string line = cat(who, ": ", what, '\n');
    [[maybe_unused]] const ssize_t written = ::write(file_.get(), line.data(), line.size());
  }

 private:
  os::Fd file_;
};

class Client {
 public:
  Client(const ClientProcess& what, api::Leases& leases, probe::History& history,
         Complaints& complaints, const Clock& clock, int thread)
      : plan_(what.plan),
        board_(what.board),
        name_(name(what.process * what.plan.threads + thread)),
        owner_(Owner::parse(name_).value()),
        leases_(leases, history, name_, clock),
        complaints_(complaints) {}

  void work() {
    while (!board_.stop) turn();
  }

 private:
  static std::string name(int number) { return cat("c", number); }

  std::uint64_t below(std::uint64_t bound) { return random_.below(bound); }
  bool one_in(std::uint64_t n) { return below(n) == 0; }

  void turn() {
    const auto resource =
        ResourceName::parse(cat("r", below(static_cast<std::uint64_t>(plan_.resources)))).value();
    const auto grip = acquire(resource, std::nullopt);
    if (!grip) return os::pause_for(Millis(20 + below(60)));
    hold(*grip);
    end(*grip);
  }

  void hold(const api::Grip& grip) {
    for (std::uint64_t renewals = below(6); renewals > 0 && !board_.stop; --renewals) {
      // Now and then too late.
      const auto ttl = static_cast<std::uint64_t>(plan_.ttl.count());
      os::pause_for(Millis(one_in(12) ? below(ttl * 5 / 4) : below(15)));
      const auto renewed = leases_.renew(grip, plan_.ttl);
      note(renewed);
      if (!renewed) note(leases_.check(grip));
    }
  }

  void end(const api::Grip& grip) {
    const std::uint64_t dice = below(24);
    const api::OrderRequest order{
        .resource = grip.resource, .expected = grip.token, .why = "test", .by = name_};
    if (dice == 0) return;  // walks away: it runs out
    if (dice <= 2) {
      const int clients = plan_.processes * plan_.threads;
      const auto to = Owner::parse(name(static_cast<int>(below(static_cast<unsigned>(clients)))));
      return note(leases_.transfer(order, to.value(), plan_.ttl));
    }
    if (dice == 3) return note(leases_.revoke(order));
    if (dice == 4) {
      const auto again = acquire(grip.resource, grip);
      if (again) release(*again);
      return;
    }
    release(grip);
  }

  void release(const api::Grip& grip) {
    for (int tries = 0; tries < 3; ++tries) {
      const auto released = leases_.release(grip);
      note(released);
      if (released) return;
      os::pause_for(Millis(20));
    }
  }

  // Asks until it is known, or, now and then, walks away from an unknown one.
  std::optional<api::Grip> acquire(const ResourceName& resource,
                                   const std::optional<api::Grip>& retaken) {
    const Claim claim = Claim::make(random_);
    const api::AcquireRequest request{
        .resource = resource,
        .owner = owner_,
        .claim = claim,
        .terms = {.ttl = plan_.ttl},
        .note = {},
        .retake = retaken ? std::optional(retaken->claim) : std::nullopt,
        .count_refusal = false};
    const bool patient = !one_in(4);
    bool unknown = false;
    for (std::optional<MonoTime> last; !last || now() < *last; os::pause_for(Millis(20))) {
      const auto answer = leases_.acquire(request, retaken ? retaken->token : Token());
      note(answer);
      if (answer) return grip_of(*answer, request, unknown);
      unknown = unknown || answer.error().code == Code::UnknownOutcome;
      if (!unknown || (!patient && !board_.stop)) return std::nullopt;
      if (board_.stop && !last) last = now() + kSettling;
    }
    complaints_.add(name_, "an unknown acquire could not be settled");
    return std::nullopt;
  }

  std::optional<api::Grip> grip_of(const api::AcquireAnswer& answer,
                                   const api::AcquireRequest& request, bool unknown) {
    if (unknown) ++board_.settled;
    const auto* granted = std::get_if<api::Granted>(&answer);
    if (granted == nullptr) return std::nullopt;
    ++board_.grants;
    if (granted->lease.owner != owner_) complaints_.add(name_, "was granted another's lease");
    return api::Grip{.resource = request.resource,
                     .token = granted->lease.token,
                     .claim = request.claim,
                     .owner = owner_,
                     .hint = granted->hint};
  }

  // A store that is gone or does not answer says one of two things, and nothing else.
  template <class Answer>
  void note(const Result<Answer>& answer) {
    if (answer) return;
    const Code code = answer.error().code;
    if (code == Code::UnknownOutcome || code == Code::Unavailable) return;
    complaints_.add(name_, cat(word(code), ": ", answer.error().message));
  }

  const TrafficPlan& plan_;
  Board& board_;
  const std::string name_;
  const Owner owner_;
  os::SystemRandom random_;
  RecordedLeases leases_;
  Complaints& complaints_;
};

template <class Try>
auto patiently(const Try& attempt) {
  const MonoTime deadline = now() + kOpening;
  while (true) {
    auto answer = attempt();
    if (answer || now() > deadline) return answer;
    os::pause_for(Millis(50));
  }
}

}  // namespace

int run_clients(const ClientProcess& what) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const os::SystemClock clock;
  os::SystemRandom random;
  Complaints complaints(cat(what.folder, '/', kComplaints));
  std::optional<History> file;
  if (what.history == nullptr) file.emplace(cat(what.folder, '/', kHistory));
  probe::History& history = file ? *file : *what.history;
  const auto refused = [&](const Error& error) {
    complaints.add(cat("process ", what.process), error.message);
    return 1;
  };
  auto store = patiently([&] { return what.open(what.process); });
  if (!store) return refused(store.error());
  auto life =
      patiently([&] { return service::begin_life(**store, random, clock.wall(), nullptr, {}); });
  if (!life) return refused(life.error());
  service::Ledger ledger(**store, clock, 1000);
  service::LeaseService service(**store, ledger, *life, clock, random, nullptr);
  const store::Capabilities& can = (*store)->capabilities();
  what.board.step_ms = can.failover_restarts_timers ? -1 : can.step.count();
  ++what.board.open;
  std::vector<std::thread> threads;
  for (int i = 0; i < what.plan.threads; ++i) {
    threads.emplace_back([&, i] { Client(what, service, history, complaints, clock, i).work(); });
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}

}  // namespace stint::test
