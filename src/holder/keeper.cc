#include "holder/keeper.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "base/check.h"

namespace stint::holder {
namespace {

constexpr MonoTime kNever = MonoTime::max();

}  // namespace

Keeper::Keeper(api::Leases& leases, const Clock& clock, Random& random,
               const core::HoldSettings& settings, std::vector<Kept> kept)
    : leases_(leases), clock_(clock), random_(random), settings_(settings) {
  CHECK(!kept.empty(), "a keeper without a lease");
  const MutexLock lock(mutex_);
  for (Kept& one : kept) {
    std::optional<core::HolderPolicy> policy;
    if (one.granted_ttl.count() > 0) {
      policy.emplace(settings_for(one), one.sent_at, one.granted_ttl, random_);
    }
    if (policy && one.store_time) {
      const core::Sighting first{one.sent_at, one.answered_at, *one.store_time};
      policy->saw(first);
      [[maybe_unused]] const auto nothing_before = store_clock_.saw(first);
    }
    CHECK(policy || one.borrowed, "a lease of our own without its ttl");
    all_.push_back({std::move(one), policy});
  }
}

// A borrowed lease has its own ttl, whatever our settings are: the grace must fit into that.
core::HoldSettings Keeper::settings_for(const Kept& kept) const {
  if (!kept.borrowed) return settings_;
  return {.ttl = kept.lent_ttl,
          .grace = std::min(settings_.grace, core::default_grace(kept.lent_ttl)),
          .margin = core::default_margin(kept.lent_ttl),
          .max_hold = {}};
}

MonoTime Keeper::step() {
  std::size_t count = 0;
  {
    const MutexLock lock(mutex_);
    count = all_.size();
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::optional<Kept> due;
    const MonoTime sent_at = clock_.mono();  // before the request is sent: G6
    {
      const MutexLock lock(mutex_);
      const One& one = all_[i];
      if (!lost_ && one.policy && sent_at >= one.policy->renew_at()) due = one.kept;
    }
    if (!due) continue;
    const auto answered =
        due->borrowed ? leases_.check(due->grip) : leases_.renew(due->grip, settings_.ttl);
    const MutexLock lock(mutex_);
    answer(all_[i], sent_at, answered, true);
  }
  return next();
}

void Keeper::look() {
  std::vector<api::Grip> grips;
  {
    const MutexLock lock(mutex_);
    if (lost_) return;
    for (const One& one : all_) grips.push_back(one.kept.grip);
  }
  for (std::size_t i = 0; i < grips.size(); ++i) {
    const MonoTime sent_at = clock_.mono();
    const auto seen = leases_.check(grips[i]);
    const MutexLock lock(mutex_);
    answer(all_[i], sent_at, seen, false);
    if (i != 0 || !seen) continue;
    if (const auto* held = std::get_if<api::Held>(&*seen)) {
      progress_ = held->lease.progress;
      progress_at_ = held->lease.progress_at;
    }
  }
}

// Every answer has the store's own time: it may show what our clock does not.   G4 G6
void Keeper::compare(One& one, MonoTime sent_at, const api::HoldAnswer& answer) {
  const auto store_time = std::visit([](const auto& any) { return any.store_time; }, answer);
  if (!store_time) return;
  const core::Sighting seen{sent_at, clock_.mono(), *store_time};
  if (one.policy) one.policy->saw(seen);
  if (const auto by = store_clock_.saw(seen)) stepped_ = stepped_.value_or(Nanos(0)) + *by;
}

std::optional<Millis> Keeper::take_step() {
  const MutexLock lock(mutex_);
  const auto by = std::exchange(stepped_, std::nullopt);
  if (!by) return std::nullopt;
  return std::chrono::duration_cast<Millis>(*by);
}

// A fault is never a loss: it is unknown whether the renewal took effect.
void Keeper::answer(One& one, MonoTime sent_at, const Result<api::HoldAnswer>& answer, bool due) {
  if (!answer) {
    trouble_ = answer.error().message;
    if (due && one.policy) one.policy->unknown(clock_.mono());
    return;
  }
  if (const auto* lost = std::get_if<api::Lost>(&*answer)) {
    compare(one, sent_at, *answer);
    if (one.policy) one.policy->lost(lost->cause);
    note_lost(one, *lost);
    return;
  }
  const auto& held = std::get<api::Held>(*answer);
  if (one.kept.borrowed) {
    // Counted from what the store says is left; it rounds up.
    one.kept.granted_ttl = held.lease.remaining.value_or(Millis(0)) - Millis(1);
    one.kept.lent_ttl = held.lease.ttl;
    one.policy.reset();
    if (one.kept.granted_ttl.count() > 0) {
      one.policy.emplace(settings_for(one.kept), sent_at, one.kept.granted_ttl, random_);
    }
    compare(one, sent_at, *answer);
    return;
  }
  if (due) {
    trouble_.clear();
    const Nanos slack = one.policy->deadline() - clock_.mono();
    least_slack_ = std::min(least_slack_.value_or(slack), slack);
    one.policy->renewed(sent_at, held.granted_ttl, clock_.mono());
  }
  compare(one, sent_at, *answer);
}

void Keeper::note_lost(const One& one, const api::Lost& lost) {
  if (lost_) return;
  lost_ = lost;
  // It was issued: to us.   G12
  if (lost.cause == core::Cause::NeverIssued) lost_->cause = core::Cause::Restored;
  lost_resource_ = one.kept.grip.resource.text();
}

MonoTime Keeper::next() const {
  const MutexLock lock(mutex_);
  MonoTime soonest = kNever;
  if (lost_) return soonest;
  for (const One& one : all_) {
    if (one.policy) soonest = std::min(soonest, one.policy->renew_at());
  }
  return soonest;
}

KeeperState Keeper::state() const {
  const MonoTime now = clock_.mono();
  const MutexLock lock(mutex_);
  KeeperState out;
  out.deadline = kNever;
  out.kill_at = kNever;
  for (const One& one : all_) {
    if (!one.policy) continue;
    out.deadline = std::min(out.deadline, one.policy->deadline());
    out.kill_at = std::min(out.kill_at, one.policy->kill_at());
    out.unsure |= one.policy->unsure();
  }
  using Standing = KeeperState::Standing;
  out.standing = lost_                 ? Standing::Lost
                 : now >= out.deadline ? Standing::Overdue
                                       : Standing::Holding;
  out.lost = lost_;
  out.lost_resource = lost_resource_;
  out.least_slack = least_slack_;
  out.trouble = trouble_;
  out.progress = progress_;
  out.progress_at = progress_at_;
  return out;
}

}  // namespace stint::holder
