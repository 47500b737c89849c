#include "holder/run.h"

#include <algorithm>

#include "base/text.h"
#include "holder/clock_step.h"
#include "os/errand.h"

namespace stint::holder {
namespace {

constexpr Millis kErrandLimit{30'000};

class Run {
 public:
  Run(api::Leases& leases, api::Events& events, const Clock& clock, Random& random,
      os::Signals& signals, const RunRequest& request, const RunHooks& hooks)
      : leases_(leases),
        events_(events),
        clock_(clock),
        random_(random),
        signals_(signals),
        request_(request),
        hooks_(hooks) {}

  Result<RunAnswer> go() {
    if (auto seen = check_sight(request_.unsafe_tree, hooks_.say); !seen) return seen.error();
    while (true) {
      auto answer = once();
      if (!answer || !request_.restart || !lost(answer->end.how)) return answer;
      again_ = true;
      if (hooks_.restarting) hooks_.restarting(answer->end);
    }
  }

 private:
  static bool lost(RunEnd::How how) {
    return how == RunEnd::How::Lost || how == RunEnd::How::Overdue;
  }

  Result<RunAnswer> once() {
    std::vector<Kept> borrowed;
    std::vector<ResourceName> wanted;
    if (auto ok = borrow(borrowed, wanted); !ok) return ok.error();
    auto taken = take_wanted(wanted);
    if (!taken) return taken.error();
    if (auto* off = std::get_if<WavedOff>(&*taken)) {
      if (request_.record_skip) record_skip(*off);
      return RunAnswer{.waved_off = std::move(*off), .interrupted = std::nullopt, .end = {}};
    }
    if (auto* signal = std::get_if<Interrupted>(&*taken)) {
      return RunAnswer{.waved_off = std::nullopt, .interrupted = signal->signal, .end = {}};
    }
    Taken& all = std::get<Taken>(*taken);
    for (Kept& kept : borrowed) all.kept.push_back(std::move(kept));
    return work(std::move(all));
  }

  // What an ancestor holds is re-used, if it is live and the claim is the right one.
  Status borrow(std::vector<Kept>& borrowed, std::vector<ResourceName>& wanted) {
    for (const ResourceName& resource : request_.resources) {
      const auto found = std::ranges::find(request_.ancestral, resource, &Ancestral::resource);
      const bool same_store =
          found != request_.ancestral.end() && found->generation == leases_.generation();
      if (found == request_.ancestral.end() || (request_.elsewhere && !same_store)) {
        wanted.push_back(resource);
        continue;
      }
      const api::Grip grip{resource, found->token, found->claim, std::nullopt, std::nullopt};
      const MonoTime sent_at = clock_.mono();
      auto live = leases_.check(grip);
      if (!live) return live.error();
      if (!same_store || std::holds_alternative<api::Lost>(*live)) {
        return Error{Code::Lost, cat("this run is inside one that held ", quoted(resource.text()),
                                     " with token ", found->token.number(),
                                     ", but that lease is gone: nothing was started")};
      }
      const api::Lease& lent = std::get<api::Held>(*live).lease;
      const auto left = lent.remaining;
      borrowed.push_back({.grip = grip,
                          .sent_at = sent_at,
                          .granted_ttl = std::max(left.value_or(Millis(0)) - Millis(1), Millis(0)),
                          .borrowed = true,
                          .lent_ttl = lent.ttl});
    }
    return {};
  }

  Result<TakeAnswer> take_wanted(const std::vector<ResourceName>& wanted) {
    if (wanted.empty()) return TakeAnswer(Taken{});
    TakeRequest bid{.choices = {wanted},
                    .owner = request_.owner,
                    .terms = request_.terms,
                    .note = request_.note,
                    .held = request_.held};
    // A restart is there to go on: it waits, whatever the first start was told.
    if (again_) bid.held = {.what = OnHeld::Wait, .patience = std::nullopt};
    for (const ResourceName& other : request_.others) bid.choices.push_back({other});
    const Interruptions interruptions{.fd = signals_.fd(),
                                      .take = [this] { return ending_signal(); }};
    return take(leases_, clock_, random_, bid, interruptions, hooks_.waiting);
  }

  std::optional<int> ending_signal() {
    while (const auto received = signals_.take()) {
      const int n = received->number;
      if (n == SIGINT || n == SIGTERM || n == SIGHUP || n == SIGQUIT) return n;
    }
    return std::nullopt;
  }

  // A skip is no failure, and it is on record.
  void record_skip(const WavedOff& off) {
    api::Event event;
    event.at = clock_.wall();
    event.kind = "skipped_held";
    event.resource = off.by.lease.resource;
    event.token = off.by.lease.token.number();
    event.owner = request_.owner.text();
    event.details.emplace_back("held_by", off.by.lease.owner.text());
    event.details.emplace_back("waited_ms", off.waited.count());
    if (auto recorded = events_.record(event); !recorded) {
      hooks_.say(cat("the skip could not be recorded: ", recorded.error().message));
    }
  }

  Result<RunAnswer> work(Taken taken) {
    Keeper keeper(leases_, clock_, random_, request_.settings, taken.kept);
    auto sealed = seal(taken, keeper);
    if (!sealed) {
      give_back(taken);
      return sealed.error();
    }
    if (*sealed) return std::move(**sealed);
    auto environment = hooks_.environment(taken, keeper.state().deadline);
    if (!environment) {
      give_back(taken);
      return environment.error();
    }
    const SuperviseRequest supervised{.command = request_.command,
                                      .environment = std::move(*environment),
                                      .settings = request_.settings,
                                      .progress_timeout = request_.progress_timeout,
                                      .progress_on_output = request_.progress_on_output,
                                      .deadline_moved = hooks_.deadline_moved,
                                      .say = hooks_.say,
                                      .started = hooks_.started,
                                      .clock_stepped = [&](Millis by) { report_step(taken, by); },
                                      .temporary = hooks_.temporary,
                                      .keeps_signal = request_.keeps_signal};
    std::vector<ResourceName> watched;
    for (const Kept& kept : taken.kept) watched.push_back(kept.grip.resource);
    Supervisor supervisor(leases_, clock_, signals_, keeper, supervised, std::move(watched),
                          std::move(taken.watches));
    auto end = supervisor.run();
    if (!end) {
      give_back(taken);
      return end.error();
    }
    RunAnswer answer{
        .waved_off = std::nullopt, .interrupted = std::nullopt, .end = std::move(*end)};
    finish(taken, answer, supervised.environment);
    return answer;
  }

  // Seal, then read, then write: the targets before the work. Empty: go on. An answer: the lease
  // was lost, or a signal came; nothing is started.   G5
  Result<std::optional<RunAnswer>> seal(const Taken& taken, Keeper& keeper) {
    using Answer = std::optional<RunAnswer>;
    if (!hooks_.seals) return Answer();
    auto steps = hooks_.seals(taken);
    if (!steps) return steps.error();
    auto end = take_steps(
        *steps, keeper,
        [&] {
          if (const auto by = keeper.take_step()) report_step(taken, *by);
        },
        [this] { return ending_signal(); });
    if (!end) return end.error();
    if (end->state.standing != KeeperState::Standing::Holding) {
      return Answer(lost_before(taken, end->state));
    }
    if (!end->interrupted) return Answer();
    give_back(taken);
    return Answer({.waved_off = std::nullopt, .interrupted = end->interrupted, .end = {}});
  }

  RunAnswer lost_before(const Taken& taken, const KeeperState& state) {
    RunAnswer answer{.waved_off = std::nullopt, .interrupted = std::nullopt, .end = {}};
    const bool lost = state.standing == KeeperState::Standing::Lost;
    answer.end.how = lost ? RunEnd::How::Lost : RunEnd::How::Overdue;
    answer.end.started = false;
    answer.end.seen_empty = true;
    answer.end.lost = state.lost;
    answer.end.lost_resource = state.lost_resource;
    finish(taken, answer, {});
    return answer;
  }

  // Released only when the tree was seen empty: otherwise the lease runs out, and what is left of
  // the tree meets the guards.   G7
  void finish(const Taken& taken, RunAnswer& answer, const std::vector<std::string>& environment) {
    RunEnd& end = answer.end;
    end.max_hold =
        end.how == RunEnd::How::Overdue &&
        core::reached_max_hold(request_.settings, taken.kept.front().sent_at, clock_.mono());
    bool reached = true;
    end.lost_token = token_of(taken, end.lost_resource);
    if (hooks_.ended) hooks_.ended(taken, end);
    if (end.how != RunEnd::How::Exited && end.how != RunEnd::How::NotExecuted) {
      reached = record_end(taken, end);
    }
    if (reached) record_measures(taken, end);
    if (!end.seen_empty) {
      hooks_.say(cat("could not be killed: ", end.survivors, "; the lease is not released"));
    } else if (end.how == RunEnd::How::Overdue) {
      // It may still be ours: a renewal was late, or the machine slept past the deadline only.
      if (reached) answer.released = give_back(taken);
    } else if (end.how == RunEnd::How::Lost) {
      give_back_others(taken, end.lost_resource);
    } else {
      answer.released = give_back(taken, end.how == RunEnd::How::Stalled, &end);
    }
    if (end.started && !request_.on_lost.empty() &&
        (lost(end.how) || end.lost || end.how == RunEnd::How::Stalled)) {
      std::vector<std::string> told = environment;
      told.push_back(cat("STINT_LOST_CAUSE=", cause_of(end)));
      if (!os::run_errand(request_.on_lost, told, kErrandLimit))
        hooks_.say("the --on-lost command failed");
    }
  }

  static Token token_of(const Taken& taken, const std::string& resource) {
    const auto same = [&](const Kept& kept) { return kept.grip.resource.text() == resource; };
    const auto found = std::ranges::find_if(taken.kept, same);
    return (found == taken.kept.end() ? taken.kept.front() : *found).grip.token;
  }

  static std::string cause_of(const RunEnd& end) {
    if (end.lost) return std::string(core::word(end.lost->cause));
    if (end.max_hold) return std::string(core::word(core::Cause::MaxHold));
    return end.how == RunEnd::How::Stalled ? "stalled" : "deadline";
  }

  // G4: what it did to the leases is for people to judge; the guards hold regardless.
  void report_step(const Taken& taken, Millis by) {
    const api::Grip& grip = taken.kept.front().grip;
    hooks_.say(clock_step_line(by));
    const auto recorded = events_.record(clock_step_event({.at = clock_.wall(),
                                                           .resource = grip.resource,
                                                           .token = grip.token,
                                                           .owner = request_.owner,
                                                           .by = by}));
    if (!recorded) hooks_.say(cat("this could not be recorded: ", recorded.error().message));
  }

  // For `stint tune`: only of runs that were renewed, or slept through something; short ones write
  // nothing more.
  void record_measures(const Taken& taken, const RunEnd& end) {
    constexpr Nanos kNap = std::chrono::seconds(1);
    if (!end.least_slack && end.slept < kNap) return;
    const api::Grip& grip = taken.kept.front().grip;
    api::Event event;
    event.at = clock_.wall();
    event.kind = "run_measured";
    event.resource = grip.resource.text();
    event.token = grip.token.number();
    event.owner = request_.owner.text();
    const auto ms = [](Nanos t) { return std::chrono::floor<Millis>(t).count(); };
    if (end.least_slack) event.details.emplace_back("slack_ms", ms(*end.least_slack));
    if (end.slept >= kNap) event.details.emplace_back("slept_ms", ms(end.slept));
    if (auto recorded = events_.record(event); !recorded) {
      hooks_.say(cat("its measures could not be recorded: ", recorded.error().message));
    }
  }

  // False: the store cannot be reached, and that may be why we are here.
  bool record_end(const Taken& taken, const RunEnd& end) {
    const api::Grip& grip = taken.kept.front().grip;
    api::Event event;
    event.at = clock_.wall();
    event.kind = end.how == RunEnd::How::Stalled ? "run_stalled" : "run_stopped";
    event.resource = end.lost_resource.empty() ? grip.resource.text() : end.lost_resource;
    event.token = end.lost_token.number();
    event.owner = request_.owner.text();
    event.details.emplace_back("cause", cause_of(end));
    if (!end.survivors.empty()) event.details.emplace_back("survivors", end.survivors);
    return events_.record(event).has_value();
  }

  // One of several was lost: the others are still ours, and nothing runs under them any more.
  void give_back_others(const Taken& taken, const std::string& lost) {
    Taken others;
    for (const Kept& kept : taken.kept) {
      if (kept.grip.resource.text() != lost) others.kept.push_back(kept);
    }
    give_back(others);
  }

  bool give_back(const Taken& taken, bool stalled = false, RunEnd* end = nullptr) {
    bool all = true;
    for (const Kept& kept : taken.kept) {
      if (kept.borrowed) continue;
      const auto released = stalled ? leases_.stall(kept.grip) : leases_.release(kept.grip, false);
      all &= released.has_value() && std::holds_alternative<api::Held>(*released);
      if (!released) hooks_.say(cat("not released: ", released.error().message));
      const auto* lost = released ? std::get_if<api::Lost>(&*released) : nullptr;
      if (lost != nullptr && end != nullptr) {
        end->lost = *lost;
        end->lost_resource = kept.grip.resource.text();
        end->lost_token = kept.grip.token;
      }
    }
    return all;
  }

  api::Leases& leases_;
  api::Events& events_;
  const Clock& clock_;
  Random& random_;
  os::Signals& signals_;
  const RunRequest& request_;
  const RunHooks& hooks_;
  bool again_ = false;
};

}  // namespace

Result<RunAnswer> run(api::Leases& leases, api::Events& events, const Clock& clock, Random& random,
                      os::Signals& signals, const RunRequest& request, const RunHooks& hooks) {
  return Run(leases, events, clock, random, signals, request, hooks).go();
}

}  // namespace stint::holder
