#include "holder/taking.h"

#include <algorithm>

#include "base/text.h"
#include "os/pause.h"

namespace stint::holder {
namespace {

// A waiter looks again after this long even if nothing woke it.
constexpr Millis kLongestSleep{30'000};
constexpr Millis kLastSecond{50};
// An unanswered acquire is asked again, with the same claim: the answer is the same grant.
constexpr int kMostUnknowns = 3;

struct Attempt {
  std::optional<Taken> taken;
  std::optional<api::Refused> refused;
};

class Taking {
 public:
  Taking(api::Leases& leases, const Clock& clock, Random& random, const TakeRequest& request)
      : leases_(leases), clock_(clock), random_(random), request_(request) {}

  // Every choice once.
  Result<Attempt> try_all(bool waited) {
    Attempt last;
    for (const auto& choice : request_.choices) {
      auto attempt = try_one(choice, waited);
      if (!attempt || attempt->taken) return attempt;
      last = std::move(*attempt);
    }
    return last;
  }

  // Registers before the next try reads.
  Status watch() {
    for (const auto& choice : request_.choices) {
      for (const ResourceName& resource : choice) {
        auto watch = leases_.watch(resource);
        if (!watch) return watch.error();
        watches_.push_back(std::move(*watch));
      }
    }
    return {};
  }

  std::vector<std::unique_ptr<Watch>> give_watches() { return std::move(watches_); }

  std::vector<int> descriptors() const {
    std::vector<int> fds;
    for (const auto& watch : watches_) fds.push_back(watch->fd());
    return fds;
  }
  void acknowledge() {
    for (const auto& watch : watches_) watch->acknowledge();
  }

 private:
  Result<api::AcquireAnswer> acquire(const ResourceName& resource, const Claim& claim,
                                     bool waited) {
    const api::AcquireRequest bid{.resource = resource,
                                  .owner = request_.owner,
                                  .claim = claim,
                                  .terms = request_.terms,
                                  .note = request_.note,
                                  .retake = std::nullopt,
                                  .count_refusal = request_.count_refusal && !waited};
    auto answer = leases_.acquire(bid);
    for (int i = 1; i < kMostUnknowns && !answer; ++i) {
      if (answer.error().code != Code::UnknownOutcome) break;
      auto again = leases_.acquire(bid);
      // Unknown stays unknown until somebody answers.
      if (!again) again.error().code = Code::UnknownOutcome;
      answer = std::move(again);
    }
    return answer;
  }

  Result<Attempt> try_one(std::vector<ResourceName> choice, bool waited) {
    std::sort(choice.begin(), choice.end());
    const Claim claim = Claim::make(random_);
    Attempt attempt;
    Taken taken;
    for (const ResourceName& resource : choice) {
      const MonoTime sent_at = clock_.mono();
      auto answer = acquire(resource, claim, waited);
      if (!answer) {
        give_back(taken);
        return answer.error();
      }
      if (auto* refused = std::get_if<api::Refused>(&*answer)) {
        give_back(taken);
        attempt.refused = std::move(*refused);
        return attempt;
      }
      auto& granted = std::get<api::Granted>(*answer);
      const api::Grip grip{resource, granted.lease.token, claim, request_.owner, granted.hint};
      taken.kept.push_back({.grip = grip,
                            .sent_at = sent_at,
                            .granted_ttl = granted.granted_ttl,
                            .borrowed = false,
                            .lent_ttl = {},
                            .answered_at = clock_.mono(),
                            .store_time = granted.store_time});
      taken.grants.push_back(std::move(granted));
    }
    const bool first_is_old = taken.kept.size() > 1;
    if (auto ok = count_anew(taken, waited || first_is_old); !ok) {
      give_back(taken);
      return ok.error();
    }
    attempt.taken = std::move(taken);
    return attempt;
  }

  // A grant that was waited for, or whose answer was a replay, is renewed once before the work
  // starts and counts from that.   G6
  Status count_anew(Taken& taken, bool all) {
    for (std::size_t i = 0; i < taken.kept.size(); ++i) {
      if (!all && !taken.grants[i].replayed) continue;
      const MonoTime sent_at = clock_.mono();
      auto renewed = leases_.renew(taken.kept[i].grip, request_.terms.ttl);
      if (!renewed) return renewed.error();
      if (std::holds_alternative<api::Lost>(*renewed)) {
        return Error{Code::Lost, cat("the lease on ", quoted(taken.kept[i].grip.resource.text()),
                                     " was lost before the work could start")};
      }
      taken.kept[i].sent_at = sent_at;
      taken.kept[i].answered_at = clock_.mono();
      taken.kept[i].granted_ttl = std::get<api::Held>(*renewed).granted_ttl;
      taken.kept[i].store_time = std::get<api::Held>(*renewed).store_time;
    }
    return {};
  }

  // Whatever cannot be released runs out by itself: nothing was started under it.
  void give_back(const Taken& taken) {
    for (const Kept& kept : taken.kept) {
      [[maybe_unused]] const auto released = leases_.release(kept.grip, false);
    }
  }

  api::Leases& leases_;
  const Clock& clock_;
  Random& random_;
  const TakeRequest& request_;
  std::vector<std::unique_ptr<Watch>> watches_;
};

// When to look again at the latest. Counted from before it was asked: if the machine slept since,
// the lease has run out meanwhile.
MonoTime next_look(MonoTime asked, const HeldPolicy& policy, const api::Refused& refused,
                   MonoTime give_up) {
  MonoTime next = asked + kLongestSleep;
  if (policy.what == OnHeld::Retry) next = asked + policy.interval;
  // Its timer may fire before anything is written: expiry wakes nobody.
  if (policy.what == OnHeld::Wait && refused.retry_in) {
    // Nothing left and still held: a store that counts in whole seconds. Not as fast as one can
    // ask.
    const Millis left = refused.retry_in->count() > 0 ? *refused.retry_in : kLastSecond;
    next = std::min(next, asked + left + Millis(1));
  }
  return std::min(next, give_up);
}

}  // namespace

Result<HeldPolicy> parse_held_policy(std::string_view text) {
  HeldPolicy policy;
  const std::size_t equals = text.find('=');
  const std::string_view what = text.substr(0, equals);
  std::optional<Millis> length;
  if (equals != std::string_view::npos) {
    const std::string_view words = text.substr(equals + 1);
    auto parsed = what == "wait" ? parse_duration_or_none(words) : parse_duration(words);
    if (!parsed) return parsed.error();
    length = *parsed;
  }
  if (what == "wait") {
    policy.what = OnHeld::Wait;
    policy.patience = length;
  } else if (what == "retry") {
    policy.what = OnHeld::Retry;
    policy.interval = length.value_or(policy.interval);
  } else if ((what == "skip" || what == "fail") && !length) {
    policy.what = what == "fail" ? OnHeld::Fail : OnHeld::Skip;
  } else {
    return invalid(cat(quoted(text), " is none of skip, wait[=30s], retry[=5s], fail"));
  }
  return policy;
}

Result<TakeAnswer> take(api::Leases& leases, const Clock& clock, Random& random,
                        const TakeRequest& request, const Interruptions& interruptions,
                        const std::function<void(const api::Refused&)>& say) {
  Taking taking(leases, clock, random, request);
  const MonoTime start = clock.mono();
  const auto waited = [&] { return std::chrono::duration_cast<Millis>(clock.mono() - start); };
  auto attempt = taking.try_all(false);
  if (!attempt) return attempt.error();
  if (attempt->taken) return TakeAnswer(std::move(*attempt->taken));
  const HeldPolicy& policy = request.held;
  if (policy.what == OnHeld::Skip || policy.what == OnHeld::Fail) {
    return TakeAnswer(WavedOff{*attempt->refused, waited()});
  }
  say(*attempt->refused);
  if (policy.what == OnHeld::Wait) {
    if (auto watched = taking.watch(); !watched) return watched.error();
  }
  const MonoTime give_up = policy.patience ? start + *policy.patience : MonoTime::max();
  while (true) {
    taking.acknowledge();
    const MonoTime asked = clock.mono();
    attempt = taking.try_all(true);
    if (!attempt) return attempt.error();
    if (attempt->taken) {
      attempt->taken->watches = taking.give_watches();
      return TakeAnswer(std::move(*attempt->taken));
    }
    if (clock.mono() >= give_up) return TakeAnswer(WavedOff{*attempt->refused, waited()});
    std::vector<int> fds = taking.descriptors();
    if (interruptions.fd >= 0) fds.push_back(interruptions.fd);
    os::wait_readable(fds, next_look(asked, policy, *attempt->refused, give_up));
    if (const auto signal = interruptions.take ? interruptions.take() : std::nullopt) {
      return TakeAnswer(Interrupted{*signal});
    }
  }
}

}  // namespace stint::holder
