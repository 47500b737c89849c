#include "core/holder_policy.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace stint::core {
namespace {

Millis drift(Millis ttl) { return Millis(ttl.count() / 1000 + 1); }

// A heartbeat every ttl/3, spread by a tenth either way, so that a fleet does not beat in step.
Millis heartbeat(const HoldSettings& settings, Millis ttl, Random& random) {
  std::int64_t third = std::max<std::int64_t>(ttl.count() / 3, 1);
  if (settings.longest_beat.count() > 0) third = std::min(third, settings.longest_beat.count());
  const auto spread = static_cast<std::uint64_t>(third / 5);
  return Millis(third - third / 10 + static_cast<std::int64_t>(random.below(spread + 1)));
}

constexpr Millis kFirstRetry{20};

// Two clocks that somebody keeps in order may differ by a thousandth of the time that passes.
Nanos drift_over(Nanos passed) { return std::chrono::abs(passed) / 1000; }
// The clock of a file server may stand still for 10 ms, and then jump.
constexpr Millis kTick{10};
// A clock that is corrected by less than this was not set: it changes no lease by more either.
constexpr Millis kNoStep{500};

MonoTime end_of(const HoldSettings& settings, MonoTime from, Millis length) {
  return from + length - settings.grace - settings.margin - drift(length);  // G6
}

}  // namespace

bool reached_max_hold(const HoldSettings& settings, MonoTime granted_at, MonoTime now) {
  return settings.max_hold.count() > 0 && now >= end_of(settings, granted_at, settings.max_hold);
}

Millis default_grace(Millis ttl) { return std::min(Millis(10'000), ttl / 6); }
Millis default_margin(Millis ttl) { return std::min(Millis(500), ttl / 10); }

Status check_settings(const HoldSettings& s) {
  const Millis latest_first_renewal = s.ttl / 3 + s.ttl / 30;
  const Millis room = s.ttl - s.grace - s.margin - drift(s.ttl);
  if (room >= latest_first_renewal + s.ttl / 10) return {};
  return invalid(cat("a ttl of ", format_duration(s.ttl), " is too short for a kill grace of ",
                     format_duration(s.grace), ": the work could not be stopped and seen dead ",
                     "before the lease runs out; use a longer --ttl or a shorter --grace"));
}

HolderPolicy::HolderPolicy(const HoldSettings& settings, MonoTime sent_at, Millis granted_ttl,
                           Random& random)
    : settings_(settings), random_(random), granted_at_(sent_at) {
  count_from(sent_at, granted_ttl);
}

HolderPolicy::Standing HolderPolicy::standing(MonoTime now) const {
  if (lost_) return Standing::Lost;
  return now >= deadline_ ? Standing::Overdue : Standing::Holding;
}

void HolderPolicy::renewed(MonoTime sent_at, Millis granted_ttl, MonoTime now) {
  failures_ = 0;
  if (now >= deadline_) {
    // The lease is kept until the work has stopped.
    renew_at_ = now + heartbeat(settings_, granted_ttl, random_);
    return;
  }
  // Never back: an answer that took long counts from its own sending, which may be the older one.
  if (sent_at < sure_since_) return;
  count_from(sent_at, granted_ttl);
}

void HolderPolicy::unknown(MonoTime now) {
  const int doublings = std::min(failures_, 8);
  ++failures_;
  const Millis wait =
      std::min(kFirstRetry * (1 << doublings), std::max(settings_.ttl / 10, kFirstRetry));
  const auto jitter =
      static_cast<std::int64_t>(random_.get().below(static_cast<std::uint64_t>(wait.count()) + 1));
  renew_at_ = now + wait + Millis(jitter) / 2;
}

std::optional<Nanos> StoreClock::saw(const Sighting& answer) {
  const std::optional<Sighting> before = std::exchange(last_, answer);
  if (!before) return std::nullopt;
  const Nanos there = answer.store_time - before->store_time;
  // The store read its clock at some time between the sending and the answer.
  const Nanos least = answer.sent_at - before->answered_at;
  const Nanos most = answer.answered_at - before->sent_at;
  const Nanos allowed = kNoStep + drift_over(most);
  if (there > most + allowed) return there - most;
  if (there < least - allowed) return there - least;
  return std::nullopt;
}

void HolderPolicy::saw(const Sighting& answer) {
  if (answer.sent_at == sure_since_) {
    counted_ = answer;
    return;
  }
  if (!counted_) return;
  const Nanos there = answer.store_time - counted_->store_time;
  const Nanos most = answer.answered_at - counted_->sent_at;
  if (there <= most + kTick + drift_over(most)) return;
  // At our time of sending the store's clock showed at most what it answered: what is left there
  // then is left here, and not more.   G6
  const Nanos unseen = there - (answer.sent_at - counted_->sent_at);
  deadline_ = std::min(deadline_, counted_deadline_ - unseen);
}

void HolderPolicy::count_from(MonoTime sent_at, Millis granted_ttl) {
  sure_since_ = sent_at;
  deadline_ = end_of(settings_, sent_at, granted_ttl);
  if (settings_.max_hold.count() > 0) {
    deadline_ = std::min(deadline_, end_of(settings_, granted_at_, settings_.max_hold));
  }
  counted_deadline_ = deadline_;
  counted_.reset();
  renew_at_ = sent_at + heartbeat(settings_, granted_ttl, random_);
}

}  // namespace stint::core
