#include "queue/worker.h"

#include <signal.h>

#include <algorithm>

#include "api/telling.h"
#include "api/words.h"
#include "base/text.h"
#include "holder/keeper.h"
#include "os/fd.h"
#include "os/files.h"
#include "os/pause.h"
#include "queue/item_leases.h"

namespace stint::queue {
namespace {

constexpr Millis kLongestWait{30'000};  // a wake-up may be lost with its writer
constexpr Millis kTroubleWait{1000};
constexpr Millis kShortestKept{1000};
constexpr Millis kShortestBeat{200};
constexpr int kLater = 75;  // the command's exit code for "not now"

bool ends(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

class Worker {
 public:
  Worker(api::Queue& queue, api::Leases& leases, const Clock& clock, Random& random,
         os::Signals& signals, const WorkRequest& request, const WorkHooks& hooks)
      : queue_(queue),
        leases_(leases),
        clock_(clock),
        random_(random),
        signals_(signals),
        request_(request),
        hooks_(hooks) {}

  Result<WorkEnd> go() {
    const auto say = [this](const std::string& line) { tell(line); };
    if (auto seen = holder::check_sight(false, say); !seen) return seen.error();
    if (auto known = queue_.config(request_.queue); !known) return known.error();
    // Registered before the first look: nothing that is put after it is slept through.
    auto watch = queue_.watch(request_.queue);
    if (!watch) return watch.error();
    watch_ = std::move(*watch);
    idle_since_ = clock_.mono();
    while (!end_.interrupted && end_.exec_error == 0 && not_sealed_ && !enough()) {
      watch_->acknowledge();
      const MonoTime sent_at = clock_.mono();
      auto claimed = queue_.claim({.queue = request_.queue,
                                   .owner = request_.owner,
                                   .claim = Claim::make(random_),
                                   .ttl = request_.ttl,
                                   .start = false,
                                   .reports = request_.reports,
                                   .starts_later = true,
                                   .will_wait = !request_.until_empty});
      if (!claimed) {
        if (claimed.error().code == Code::Invalid || !trouble(claimed.error())) {
          return claimed.error();
        }
        continue;
      }
      if (const auto* empty = std::get_if<api::EmptyQueue>(&*claimed)) {
        if (!wait_for_work(*empty)) break;
        continue;
      }
      one(std::get<api::ClaimedItem>(*claimed), sent_at);
      if (hooks_.item_over) hooks_.item_over();
      idle_since_ = clock_.mono();
      look_at_signals();
    }
    if (!not_sealed_) return not_sealed_.error();
    return end_;
  }

 private:
  bool enough() const {
    return request_.most > 0 && end_.completed + end_.failed + end_.lost >= request_.most;
  }

  // A store that is away comes back: a worker is patient, once it has begun.
  bool trouble(const Error& error) {
    hooks_.say(cat("cannot claim: ", error.message));
    if (!begun_) return false;
    os::wait_readable({signals_.fd()}, clock_.mono() + kTroubleWait);
    look_at_signals();
    return true;
  }

  void look_at_signals() {
    while (const auto received = signals_.take()) {
      if (ends(received->number)) end_.interrupted = received->number;
    }
  }

  // False: there is nothing more to wait for.
  bool wait_for_work(const api::EmptyQueue& empty) {
    begun_ = true;
    if (request_.until_empty) return false;
    const MonoTime now = clock_.mono();
    MonoTime until = now + std::min(empty.next_in.value_or(kLongestWait), kLongestWait);
    if (request_.give_up) {
      const MonoTime last = idle_since_ + *request_.give_up;
      if (now >= last) return false;
      until = std::min(until, last);
    }
    os::wait_readable({signals_.fd(), watch_->fd()}, until);
    look_at_signals();
    return true;
  }

  void tell(const std::string& line) const { hooks_.say(line); }

  // ---- one item

  void one(const api::ClaimedItem& claimed, MonoTime sent_at) {
    begun_ = true;
    with_empty_ = true;
    const api::ItemRef ref{claimed.item.id, claimed.item.item.epoch};
    Millis granted = claimed.granted_ttl;
    // Too short to be kept by renewals: it is kept for longer.
    ttl_ = granted < kShortestKept ? kShortestKept : request_.ttl;
    if (granted < kShortestKept && !renew(ref, granted, sent_at)) return;
    ItemLeases both(queue_, leases_, ref, ttl_);
    holder::Taken with;
    if (request_.with && !take_with(both, ref, with, granted, sent_at)) return;
    sent_at_ = sent_at;
    const core::HoldSettings settings = settings_for(claimed.item.item.limits, granted);
    std::vector<holder::Kept> kept = kept_of(ref, with, granted);
    holder::Keeper keeper(both, clock_, random_, settings, kept);
    if (request_.with && !seal(ref, with, keeper)) {
      release(both, with);
      return;
    }
    // From here on its worker's death is no proof that nothing was done.
    auto started = queue_.start(ref, request_.reports);
    if (!started || std::holds_alternative<api::ItemLost>(*started)) {
      tell(cat(ref.id.text(),
               ": not started: ", started ? "the claim is gone" : started.error().message));
      if (!started && started.error().code != Code::UnknownOutcome) give_back(ref);
      release(both, with);
      ++end_.lost;
      return;
    }
    granted_ = granted;
    supervise(claimed, ref, both, with, {keeper, settings, kept});
    release(both, with);
  }

  std::vector<holder::Kept> kept_of(const api::ItemRef& ref, const holder::Taken& with,
                                    Millis granted) {
    std::vector<holder::Kept> kept = {
        {.grip = {ResourceName::parse(ref.id.text()).value(), ref.epoch, Claim::make(random_),
                  std::nullopt, std::nullopt},
         .sent_at = sent_at_,
         .granted_ttl = granted}};
    kept.insert(kept.end(), with.kept.begin(), with.kept.end());
    return kept;
  }

  // Seal, then read, then write. False: the item is not to be started.   G5
  bool seal(const api::ItemRef& ref, const holder::Taken& with, holder::Keeper& keeper) {
    if (!hooks_.seals) return true;
    auto steps = hooks_.seals(with);
    auto end = steps ? holder::take_steps(*steps, keeper, nullptr,
                                          [this] {
                                            look_at_signals();
                                            return end_.interrupted;
                                          })
                     : Result<holder::SealEnd>(steps.error());
    if (!end) {
      not_sealed_ = end.error();
      give_back(ref);
      return false;
    }
    if (end->state.standing != holder::KeeperState::Standing::Holding) {
      tell(cat(ref.id.text(), ": the claim or its lease was lost before it was started"));
      give_back(ref);
      ++end_.lost;
      return false;
    }
    if (end->interrupted) give_back(ref);
    return !end->interrupted;
  }

  // The item is kept while its lease is waited for.
  bool take_with(ItemLeases& both, const api::ItemRef& ref, holder::Taken& with, Millis& granted,
                 MonoTime& sent_at) {
    holder::TakeRequest bid{.choices = {{*request_.with}},
                            .owner = request_.owner,
                            .terms = request_.terms,
                            .note = cat("item ", ref.id.text()),
                            .held = {.what = holder::OnHeld::Wait, .patience = granted / 3}};
    const holder::Interruptions interruptions{.fd = signals_.fd(), .take = [this] {
                                                look_at_signals();
                                                return end_.interrupted;
                                              }};
    while (true) {
      auto taken =
          holder::take(both, clock_, random_, bid, interruptions, [](const api::Refused&) {});
      if (taken && std::holds_alternative<holder::Taken>(*taken)) {
        with = std::move(std::get<holder::Taken>(*taken));
        return true;
      }
      if (!taken || std::holds_alternative<holder::Interrupted>(*taken)) {
        if (!taken) tell(cat(request_.with->text(), ": ", taken.error().message));
        give_back(ref);
        return false;
      }
      if (!renew(ref, granted, sent_at)) return false;
    }
  }

  // False: the claim is lost.
  bool renew(const api::ItemRef& ref, Millis& granted, MonoTime& sent_at) {
    const MonoTime now = clock_.mono();
    auto renewed = queue_.renew(ref, ttl_);
    if (!renewed) return true;  // it may have happened: what was granted before still counts
    if (std::holds_alternative<api::ItemLost>(*renewed)) {
      ++end_.lost;
      return false;
    }
    granted = std::get<api::ItemDone>(*renewed).granted_ttl;
    sent_at = now;
    return true;
  }

  void give_back(const api::ItemRef& ref) {
    auto released = queue_.release(ref);
    if (!released) tell(cat(ref.id.text(), ": not given back: ", released.error().message));
  }

  void release(ItemLeases& both, const holder::Taken& with) {
    if (!with_empty_) return;  // something of the tree may still write: the lease runs out
    for (const holder::Kept& kept : with.kept) {
      auto released = both.release(kept.grip, false);
      if (!released) tell(cat("not released: ", released.error().message));
    }
  }

  core::HoldSettings settings_for(const core::ItemLimits& limits, Millis granted) const {
    core::HoldSettings settings{.ttl = granted,
                                .grace = core::default_grace(granted),
                                .margin = core::default_margin(granted)};
    if (request_.grace) settings.grace = *request_.grace;
    // A claim that shows no progress ends by itself: its work is not to go on for a third of a ttl.
    if (limits.progress_timeout.count() > 0) {
      settings.longest_beat = std::max(limits.progress_timeout, kShortestBeat);
    }
    return settings;
  }

  struct Kept {
    holder::Keeper& keeper;
    const core::HoldSettings& settings;
    const std::vector<holder::Kept>& all;
  };

  void supervise(const api::ClaimedItem& claimed, const api::ItemRef& ref, ItemLeases& both,
                 holder::Taken& with, const Kept& kept) {
    holder::Keeper& keeper = kept.keeper;
    auto path = hooks_.payload_file(claimed);
    auto input = path ? os::open_to_read(*path) : Result<os::Fd>(path.error());
    auto environment = path ? hooks_.environment(claimed, with, *path, keeper.state().deadline)
                            : Result<std::vector<std::string>>(path.error());
    if (!input || !environment) {
      tell(cat(ref.id.text(), ": ", input ? environment.error().message : input.error().message));
      give_back(ref);
      ++end_.lost;
      return;
    }
    const holder::SuperviseRequest supervised{
        .command = request_.command,
        .environment = std::move(*environment),
        .settings = kept.settings,
        .progress_timeout = std::nullopt,
        .progress_on_output = false,
        .deadline_moved = hooks_.deadline_moved,
        .say = hooks_.say,
        .clock_stepped = [](Millis) {},
        .input = input->get(),
        .temporary = hooks_.temporary,
        // Stops claiming, and finishes what it has; the second one is for the work.
        .keeps_signal = [this](int signal) { return keep(signal); }};
    std::vector<ResourceName> watched;
    for (const holder::Kept& one : kept.all) watched.push_back(one.grip.resource);
    holder::Supervisor supervisor(both, clock_, signals_, keeper, supervised, std::move(watched),
                                  std::move(with.watches));
    auto end = supervisor.run();
    if (!end) {
      tell(cat(ref.id.text(), ": ", end.error().message));
      give_back(ref);
      ++end_.lost;
      return;
    }
    with_empty_ = end->seen_empty;
    report(ref, *end);
  }

  bool keep(int signal) {
    if (!ends(signal) || end_.interrupted) return false;
    end_.interrupted = signal;
    tell("told to stop: finishing the item at hand");
    return true;
  }

  // A late word counts until somebody else claims the item, and nobody does before the claim has
  // run out.
  api::Told<api::ItemAnswer> tell_end(const api::ItemRef& ref, int code,
                                      const std::optional<os::End>& end) {
    const api::Retelling how{
        .clock = clock_,
        .until = clock_.mono() + granted_,
        .wait = [this](MonoTime until) { return wait_to_retell(until); },
        .say =
            [&](const Error& error) {
              tell(cat(ref.id.text(), ": its end is told again: ", error.message));
            }};
    return api::tell_until_heard<api::ItemAnswer>(how, [&]() -> Result<api::ItemAnswer> {
      if (code == 0) return queue_.complete({.ref = ref, .result = std::nullopt, .then = {}});
      if (code == kLater) return queue_.fail(ref, "later (exit code 75)", Millis(0));
      return queue_.fail(ref, os::how_it_ended(end), std::nullopt);
    });
  }

  // False: told to stop a second time.
  bool wait_to_retell(MonoTime until) {
    os::wait_readable({signals_.fd()}, until);
    while (const auto received = signals_.take()) {
      if (!ends(received->number)) continue;
      if (end_.interrupted) return false;
      end_.interrupted = received->number;
      tell(
          "told to stop: the store is still to be told how the item ended; a second signal ends "
          "that");
    }
    return true;
  }

  // By 'stint queue complete --result ...'. A second word would be refused, and on record as stale.
  bool spoke_for_itself(const api::ItemRef& ref) {
    const auto now = queue_.show(ref.id);
    return now && *now && (*now)->item.epoch == ref.epoch &&
           (*now)->item.state == core::ItemState::Done;
  }

  // What the store is told. Of a claim that is lost, or whose work cannot be seen dead: nothing.
  void report(const api::ItemRef& ref, const holder::RunEnd& end) {
    using How = holder::RunEnd::How;
    if (end.how == How::NotExecuted) {
      end_.exec_error = end.exec_error;
      give_back(ref);
      return;
    }
    const bool over = end.how == How::Exited || end.how == How::Unguarded;
    if (!over || !end.seen_empty) {
      ++end_.lost;
      const std::string why = end.lost ? api::describe_loss(*end.lost, ref.epoch) : "";
      tell(cat(ref.id.text(),
               end.seen_empty ? ": the claim is lost, and the work was stopped"
                              : ": could not be stopped: " + end.survivors,
               why.empty() ? "" : ": ", why));
      return;
    }
    const bool by_itself = end.how == How::Exited && end.child && end.child->signal() == 0;
    const int code = by_itself ? end.child->code() : -1;
    if (spoke_for_itself(ref)) {
      ++end_.completed;
      if (code != 0) {
        tell(cat(ref.id.text(), ": it had completed itself; ", os::how_it_ended(end.child),
                 " changes nothing"));
      }
      return;
    }
    const auto [answer, unsure] = tell_end(ref, code, end.child);
    if (!answer) {
      ++end_.lost;
      tell(cat(ref.id.text(), ": its end could not be told: ", answer.error().message));
      return;
    }
    // The command may have failed or released it itself.
    const auto* lost = std::get_if<api::ItemLost>(&*answer);
    const bool spoken = lost != nullptr && lost->cause == core::ItemCause::Spoken;
    if (lost != nullptr && !spoken) {
      ++end_.lost;
      tell(cat(ref.id.text(),
               unsure
                   ? ": whether its end was heard the first time is not known; now it is too late ("
                   : ": its end came too late (",
               core::word(lost->cause), ")"));
    } else if (code == 0) {
      ++end_.completed;
    } else {
      ++end_.failed;
    }
  }

  api::Queue& queue_;
  api::Leases& leases_;
  const Clock& clock_;
  Random& random_;
  os::Signals& signals_;
  const WorkRequest& request_;
  const WorkHooks& hooks_;

  std::unique_ptr<Watch> watch_;
  WorkEnd end_;
  Status not_sealed_;
  MonoTime idle_since_{};
  MonoTime sent_at_{};
  Millis granted_{0};       // of the claim at hand
  Millis ttl_{0};           // of the claim at hand; zero: as long as before
  bool begun_ = false;      // the store has answered once
  bool with_empty_ = true;  // the last tree was seen empty
};

}  // namespace

Result<WorkEnd> work(api::Queue& queue, api::Leases& leases, const Clock& clock, Random& random,
                     os::Signals& signals, const WorkRequest& request, const WorkHooks& hooks) {
  return Worker(queue, leases, clock, random, signals, request, hooks).go();
}

}  // namespace stint::queue
