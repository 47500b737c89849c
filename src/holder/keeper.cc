#include "holder/keeper.h"

#include <algorithm>

#include "base/check.h"

namespace stint::holder {
namespace {

// A borrowed lease has no deadline of its own: whoever lent it stops us.
constexpr MonoTime kNever = MonoTime::max();

}  // namespace

Keeper::Keeper(api::Leases& leases, const Clock& clock, Random& random,
               const core::HoldSettings& settings, std::vector<Kept> kept)
    : leases_(leases), clock_(clock), settings_(settings) {
  CHECK(!kept.empty(), "a keeper without a lease");
  const MutexLock lock(mutex_);
  for (Kept& one : kept) {
    const core::HolderPolicy policy(settings, one.sent_at, one.granted_ttl, random);
    all_.push_back({std::move(one), policy});
  }
}

MonoTime Keeper::step() {
  std::size_t count = 0;
  {
    const MutexLock lock(mutex_);
    count = all_.size();
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::optional<api::Grip> due;
    const MonoTime sent_at = clock_.mono();  // before the request is sent: G6
    {
      const MutexLock lock(mutex_);
      const One& one = all_[i];
      const bool wanted = !one.kept.borrowed && !lost_ && sent_at >= one.policy.renew_at();
      if (wanted) due = one.kept.grip;
    }
    if (!due) continue;
    const auto renewed = leases_.renew(*due, settings_.ttl);
    const MutexLock lock(mutex_);
    answer(all_[i], sent_at, renewed, true);
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
    const auto seen = leases_.check(grips[i]);
    const MutexLock lock(mutex_);
    answer(all_[i], {}, seen, false);
    if (i != 0 || !seen) continue;
    if (const auto* held = std::get_if<api::Held>(&*seen)) {
      progress_ = held->lease.progress;
      progress_at_ = held->lease.progress_at;
    }
  }
}

// A fault is never a loss: it is unknown whether the renewal took effect.
void Keeper::answer(One& one, MonoTime sent_at, const Result<api::HoldAnswer>& answer, bool renewal) {
  if (!answer) {
    trouble_ = answer.error().message;
    if (renewal) one.policy.unknown(clock_.mono());
    return;
  }
  if (const auto* lost = std::get_if<api::Lost>(&*answer)) {
    one.policy.lost(lost->cause);
    note_lost(one, *lost);
    return;
  }
  if (!renewal) return;
  trouble_.clear();
  const auto& held = std::get<api::Held>(*answer);
  one.policy.renewed(sent_at, held.granted_ttl.count() > 0 ? held.granted_ttl : settings_.ttl);
}

void Keeper::note_lost(const One& one, const api::Lost& lost) {
  if (lost_) return;
  lost_ = lost;
  lost_resource_ = one.kept.grip.resource.text();
}

MonoTime Keeper::next() const {
  const MutexLock lock(mutex_);
  MonoTime soonest = kNever;
  if (lost_) return soonest;
  for (const One& one : all_) {
    if (!one.kept.borrowed) soonest = std::min(soonest, one.policy.renew_at());
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
    if (one.kept.borrowed) continue;
    if (one.policy.deadline() < out.deadline) {
      out.deadline = one.policy.deadline();
      out.kill_at = one.policy.kill_at();
    }
    out.unsure |= one.policy.unsure();
  }
  using Standing = KeeperState::Standing;
  out.standing = lost_ ? Standing::Lost : now >= out.deadline ? Standing::Overdue : Standing::Holding;
  out.lost = lost_;
  out.lost_resource = lost_resource_;
  out.trouble = trouble_;
  out.progress = progress_;
  out.progress_at = progress_at_;
  return out;
}

}  // namespace stint::holder
