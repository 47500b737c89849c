// The janitor: it runs inside whoever claims, without a leader.
#include <algorithm>

#include "service/queue_service.h"

namespace stint::service {

using store::Step;

namespace {

constexpr std::size_t kTendPage = 128;
constexpr std::size_t kDuePage = 32;

void sooner(std::optional<Millis>& next, std::optional<Millis> other) {
  if (!other) return;
  const Millis at = std::max(*other, Millis(1));
  next = next ? std::min(*next, at) : at;
}

}  // namespace

void QueueService::count_moved(const Settled& settled, api::Tended& tended) {
  if (settled.decision.outcome != core::ItemOutcome::Done) return;
  if (settled.seen.shelf == Shelf::Parked) {
    ++tended.parked;
    ++parked_;
  } else {
    ++tended.requeued;
  }
}

// Epoch, progress and timer are checked again in the commit: a completion or a renewal that came
// meanwhile wins (river#1302).   G8
Status QueueService::tend_fired(const core::QueueName& queue,
                                const std::vector<store::Entry>& entries, api::Tended& tended) {
  for (const store::Entry& entry : entries) {
    if (entry.timer.state != TimerState::Fired) {
      sooner(tended.next_in, entry.timer.remaining);
      continue;
    }
    const auto id = id_of(queue, entry.key);
    if (!id) continue;
    forget(*id);
    auto settled = settle(*id, core::TendItem{}, {});
    if (!settled) return settled.error();
    if (*settled) count_moved(**settled, tended);
  }
  return {};
}

// One page of a list that may be any length: from where the last look ended, and from the start
// again after its end.
Result<std::vector<store::Entry>> QueueService::next_page(const core::QueueName& queue,
                                                          const std::string& prefix,
                                                          std::size_t length) {
  std::string after;
  {
    const MutexLock lock(mutex_);
    after = candidates_[queue].after[prefix];
  }
  auto found = store_.scan({.prefix = prefix, .after = after, .limit = length, .backwards = false});
  if (!found) return found.error();
  const MutexLock lock(mutex_);
  candidates_[queue].after[prefix] =
      found->entries.size() < length ? std::string() : found->entries.back().key;
  return std::move(found->entries);
}

// Some list has been looked at in part only.
bool QueueService::in_the_middle(const core::QueueName& queue) {
  const MutexLock lock(mutex_);
  return std::ranges::any_of(candidates_[queue].after,
                             [](const auto& each) { return !each.second.empty(); });
}

Status QueueService::tend_pages(const core::QueueName& queue, api::Tended& tended) {
  for (const std::string& prefix : {shelf_prefix(Shelf::Claimed, queue), pace_prefix(queue)}) {
    auto found = next_page(queue, prefix, kTendPage);
    if (!found) return found.error();
    if (auto done = tend_fired(queue, *found, tended); !done) return done;
  }
  return {};
}

// What has waited long enough goes to those that anybody may claim. No change of the item's own.
Result<bool> QueueService::promote_one(const Seen& seen) {
  StoredItem stored = seen.stored;
  stored.not_before.reset();
  stored.item.reserved_for = {};
  Step leave;
  leave.kind = Step::Kind::Remove;
  leave.key = shelf_key(Shelf::Later, seen.id);
  leave.expect = store::Expect::Seen;
  leave.version = seen.version;
  leave.demand = TimerState::Fired;
  Step arrive;
  arrive.kind = Step::Kind::Set;
  arrive.key = shelf_key(Shelf::Ready, seen.id);
  arrive.expect = store::Expect::Absent;
  arrive.value = encode(stored);
  arrive.timer = Step::TimerOp::Stop;
  std::vector<Step> steps = {std::move(leave), std::move(arrive)};
  for (std::string& key : index_keys(seen.id, seen.stored)) {
    Step& index = steps.emplace_back();
    index.kind = Step::Kind::Remove;
    index.key = std::move(key);
  }
  // A store that is being moved keeps its items where they stand.
  auto base = ground();
  if (!base) return base.error();
  if (!base->usable) return base->usable.error();
  steps.insert(steps.end(), base->checks.begin(), base->checks.end());
  auto done = store_.commit(steps, store::Sync::Relaxed);
  if (!done) return done.error();
  if (std::holds_alternative<store::Committed>(*done)) return true;
  forget_ground();
  return false;
}

Status QueueService::promote(const core::QueueName& queue, api::Tended& tended) {
  bool moved = false;
  // By their time: what is due stands first. Those that were reserved by an earlier version are
  // found by their owner alone.
  auto due = store_.scan(
      {.prefix = due_prefix(queue), .after = "", .limit = kDuePage, .backwards = false});
  if (!due) return due.error();
  auto reserved = next_page(queue, reserved_prefix(queue), kDuePage);
  if (!reserved) return reserved.error();
  for (const auto* found : {&due->entries, &*reserved}) {
    for (const store::Entry& entry : *found) {
      const auto id = id_of(queue, entry.key);
      if (!id) continue;
      auto seen = look(*id);
      if (!seen) return seen.error();
      if (!*seen || (*seen)->shelf != Shelf::Later) continue;
      if ((*seen)->timers.delay.state != TimerState::Fired) {
        sooner(tended.next_in, (*seen)->timers.delay.remaining);
        continue;
      }
      auto done = promote_one(**seen);
      if (!done) return done.error();
      moved = moved || *done;
    }
  }
  if (moved) ring(queue);
  const MutexLock lock(mutex_);
  if (moved) candidates_[queue].found.clear();
  return {};
}

Result<api::Tended> QueueService::tend(const core::QueueName& queue) {
  api::Tended tended;
  const MonoTime now = clock_.mono();
  const bool goes_on = in_the_middle(queue);
  if (auto ok = tend_pages(queue, tended); !ok) return ok.error();
  if (auto ok = promote(queue, tended); !ok) return ok.error();
  const MutexLock lock(mutex_);
  Candidates& here = candidates_[queue];
  here.tended = now;
  if (goes_on) sooner(tended.next_in, here.next_in);  // of the pages before
  here.next_in = tended.next_in;
  if (tended.requeued > 0) here.found.clear();
  return tended;
}

}  // namespace stint::service
