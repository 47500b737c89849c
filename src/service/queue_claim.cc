// Putting, claiming, and the janitor.
//
// A claim must not read a million items: the items that may be claimed stand on a shelf of their
// own, in order, and a look there takes the first few. A service that is alone takes the first; one
// that meets others picks among them by chance, so that they do not all run after the same. What a
// look found is kept for a moment: the next claims of this process take from it. Every claim is
// proved by its commit.
#include <algorithm>

#include "base/text.h"
#include "service/queue_service.h"

namespace stint::service {

using store::Step;

namespace {

constexpr int kMostTries = 1000;
constexpr int kMostUnknowns = 3;
constexpr std::size_t kCandidates = 64;
constexpr Millis kCandidatesKept{50};
constexpr Millis kConfigKept{1000};
// How often a service that claims again and again looks after expired claims on the way.
constexpr Millis kTendEvery{100};
constexpr int kContention = 32;
constexpr std::size_t kTendPage = 128;
constexpr std::size_t kDuePage = 32;

void sooner(std::optional<Millis>& next, std::optional<Millis> other) {
  if (!other) return;
  const Millis at = std::max(*other, Millis(1));
  next = next ? std::min(*next, at) : at;
}

}  // namespace

// ---- queues

Status QueueService::configure(const api::QueueConfig& config) {
  if (auto ok = core::check_limits(config.limits); !ok) return ok;
  Step step;
  step.kind = Step::Kind::Set;
  step.key = queue_key(config.name);
  step.value = encode(config.limits);
  auto done = store_.commit({step}, store::Sync::Durable);
  if (!done) return done.error();
  const MutexLock lock(mutex_);
  configs_.insert_or_assign(config.name, std::pair(config.limits, clock_.mono()));
  return {};
}

Result<api::QueueConfig> QueueService::config(const core::QueueName& queue) {
  {
    const MutexLock lock(mutex_);
    const auto known = configs_.find(queue);
    if (known != configs_.end() && clock_.mono() < known->second.second + kConfigKept) {
      return api::QueueConfig{queue, known->second.first};
    }
  }
  auto reading = store_.read({queue_key(queue)});
  if (!reading) return reading.error();
  const store::Entry& entry = reading->entries.front();
  core::ItemLimits limits;
  if (entry.present()) {
    auto decoded = decode_limits(entry.value);
    if (!decoded) return decoded.error();
    limits = *decoded;
  } else {
    const auto declared = std::ranges::find(declared_, queue, &api::QueueConfig::name);
    if (declared == declared_.end()) return api::unknown_queue(queue);
    limits = declared->limits;
    if (auto made = configure(*declared); !made) return made.error();
  }
  const MutexLock lock(mutex_);
  configs_.insert_or_assign(queue, std::pair(limits, clock_.mono()));
  return api::QueueConfig{queue, limits};
}

// ---- put

Result<core::ItemLimits> QueueService::limits_for(const api::PutRequest& request) {
  auto known = config(request.queue);
  if (known) return request.limits.value_or(known->limits);
  if (known.error().code != Code::Invalid || !request.create) return known.error();
  const core::ItemLimits limits = request.limits.value_or(core::ItemLimits{});
  if (auto made = configure({request.queue, limits}); !made) return made.error();
  return limits;
}

Result<api::PutAnswer> QueueService::put(const api::PutRequest& request) {
  if (auto ok = api::check_put(request); !ok) return ok.error();
  auto limits = limits_for(request);
  if (!limits) return limits.error();
  std::optional<core::ItemId> id;
  int unknowns = 0;
  bool rings = false;  // somebody waits: the bell is taken away in the same commit
  for (int tries = 0; tries < kMostTries; ++tries) {
    auto base = ground();
    if (!base) return base.error();
    if (!base->usable) return base->usable.error();
    if (!id) {
      const MutexLock lock(mutex_);
      id = ids_.make(request.queue, request.priority, clock_.wall(), random_);
    }
    auto steps = plan_put(*id, request, *limits, StoredItem());
    if (!steps) return steps.error();
    std::size_t unique_at = 0;
    if (!request.unique.empty()) {
      unique_at = steps->size();
      Step& step = steps->emplace_back();
      step.kind = Step::Kind::Set;
      step.key = unique_key(request.queue, request.unique);
      step.expect = store::Expect::Absent;
      step.value = id->text();
    }
    const std::size_t bell_at = steps->size();
    Step& bell = steps->emplace_back();
    bell.kind = rings ? Step::Kind::Remove : Step::Kind::Check;
    bell.key = bell_key(request.queue);
    bell.expect = rings ? store::Expect::Any : store::Expect::Absent;
    const std::size_t ground_at = steps->size();
    steps->insert(steps->end(), base->checks.begin(), base->checks.end());
    auto done = store_.commit(*steps, store::Sync::Durable);
    if (!done) {
      if (done.error().code != Code::UnknownOutcome || ++unknowns >= kMostUnknowns) {
        return done.error();
      }
      continue;  // under the same id: that settles it
    }
    const auto* conflict = std::get_if<store::Conflict>(&*done);
    if (conflict == nullptr) {
      ++puts_;
      note_put(*id);
      return api::PutAnswer{.id = *id, .existed = false};
    }
    if (conflict->step >= ground_at) {
      forget_ground();
      continue;
    }
    if (conflict->step == bell_at) {
      rings = true;
      continue;
    }
    // It is there: from the try whose answer was lost, or (hardly ever) another's of the same name.
    auto there = look(*id);
    if (!there) return there.error();
    if (unknowns > 0 && *there) return api::PutAnswer{.id = *id, .existed = false};
    if (unique_at > 0 && conflict->step == unique_at) {
      auto taken = store_.read({unique_key(request.queue, request.unique)});
      if (!taken) return taken.error();
      const store::Entry& entry = taken->entries.front();
      if (!entry.present()) continue;  // it was dropped meanwhile
      auto other = core::ItemId::parse(entry.value);
      if (!other) return unavailable("the store holds a damaged unique key");
      return api::PutAnswer{.id = *other, .existed = true};
    }
    id.reset();
  }
  return unavailable(cat("the queue ", quoted(request.queue.text()), " changes too fast"));
}

// Before the last look of a claim that will wait: what is put after it finds the bell.
Status QueueService::hang_bell(const core::QueueName& queue) {
  Step step;
  step.kind = Step::Kind::Set;
  step.key = bell_key(queue);
  step.expect = store::Expect::Absent;  // another's will do
  step.value = "{}";
  auto done = store_.commit({step}, store::Sync::Relaxed);
  if (!done && done.error().code != Code::UnknownOutcome) return done.error();
  return {};
}

// Apart from the commit that brought something: who dies in between leaves the waiters asleep for
// 30 s at the most.
void QueueService::ring(const core::QueueName& queue) {
  auto bell = store_.read({bell_key(queue)});
  if (!bell || !bell->entries.front().present()) return;
  Step step;
  step.kind = Step::Kind::Remove;
  step.key = bell_key(queue);
  [[maybe_unused]] const bool rung = store_.commit({step}, store::Sync::Relaxed).has_value();
}

// An item that comes before those that this service has in mind is to be seen at once.
void QueueService::note_put(const core::ItemId& id) {
  const MutexLock lock(mutex_);
  const auto known = candidates_.find(id.queue());
  if (known == candidates_.end() || known->second.found.empty()) return;
  if (shelf_key(Shelf::Ready, id) < known->second.found.front().key) known->second.found.clear();
}

// ---- claim

Result<std::optional<store::Entry>> QueueService::candidate(const core::QueueName& queue) {
  const auto take = [&]() REQUIRES(mutex_) -> std::optional<store::Entry> {
    Candidates& here = candidates_[queue];
    if (here.found.empty()) return std::nullopt;
    std::size_t pick = 0;
    if (here.contention > 0) {
      // Among those of the highest priority: its letters are the first two of the id.
      const std::string first = here.found.front().key.substr(
          0, here.found.front().key.size() - core::ItemId::kSuffix + 2);
      const auto same = std::ranges::find_if_not(
          here.found, [&](const store::Entry& entry) { return entry.key.starts_with(first); });
      pick = random_.below(static_cast<std::uint64_t>(same - here.found.begin()));
    }
    store::Entry entry = std::move(here.found[pick]);
    here.found.erase(here.found.begin() + static_cast<std::ptrdiff_t>(pick));
    here.in_hand.insert(entry.key);
    return entry;
  };
  {
    const MutexLock lock(mutex_);
    Candidates& here = candidates_[queue];
    if (clock_.mono() >= here.fetched + kCandidatesKept) here.found.clear();
    if (auto entry = take()) return entry;
  }
  auto found = store_.scan({.prefix = shelf_prefix(Shelf::Ready, queue),
                            .after = "",
                            .limit = kCandidates,
                            .backwards = false});
  if (!found) return found.error();
  const MutexLock lock(mutex_);
  Candidates& here = candidates_[queue];
  here.fetched = clock_.mono();
  here.found.clear();
  for (store::Entry& entry : found->entries) {
    if (!here.in_hand.contains(entry.key)) here.found.push_back(std::move(entry));
  }
  return take();
}

void QueueService::put_down(const core::QueueName& queue, const std::string& key, bool conflict) {
  const MutexLock lock(mutex_);
  Candidates& here = candidates_[queue];
  here.in_hand.erase(key);
  if (conflict) {
    here.contention = kContention;
    here.found.clear();  // others are at work: it is old already
  } else if (here.contention > 0) {
    --here.contention;
  }
}

// One try on one item. Empty and `conflict`: somebody else was first.
Result<std::optional<QueueService::Settled>> QueueService::try_claim(const Seen& seen,
                                                                     const core::ClaimItem& bid,
                                                                     bool& conflict) {
  using Answer = std::optional<Settled>;
  conflict = false;
  for (int unknowns = 0;;) {
    auto base = ground();
    if (!base)
      return unknowns > 0 ? Error{Code::UnknownOutcome, base.error().message} : base.error();
    if (!base->usable) return base->usable.error();
    const WallTime now = wall_of(seen);
    Settled settled{.decision = core::decide({seen.stored.item, seen.timers}, bid,
                                             {.floor = base->floor, .now_wall = now}),
                    .seen = seen};
    if (!settled.decision.change) return Answer();
    StoredItem after = seen.stored;
    after.item = settled.decision.change->item;
    auto steps = plan(seen, bid, after, *settled.decision.change);
    steps.insert(steps.end(), base->checks.begin(), base->checks.end());
    const std::size_t ground_at = steps.size() - base->checks.size();
    for (auto& event : plan_events(seen, bid, *settled.decision.change, now)) {
      steps.push_back(std::move(event));
    }
    auto done = store_.commit(steps, store::Sync::Durable);
    if (!done) {
      if (done.error().code != Code::UnknownOutcome || ++unknowns >= kMostUnknowns) {
        return done.error();
      }
      continue;  // the same on the same version: then the lost one can no longer apply
    }
    if (const auto* no = std::get_if<store::Conflict>(&*done)) {
      if (no->step >= ground_at) {
        forget_ground();
        continue;
      }
      if (unknowns > 0) {
        // Ours, if the answer was lost; or another's, and then ours will never be.
        auto now_there = look(seen.id);
        if (!now_there) return Error{Code::UnknownOutcome, now_there.error().message};
        if (*now_there && (*now_there)->stored.item.claim.matches(bid.claim)) {
          settled.seen = **now_there;
          settled.granted_ttl = settled.seen.timers.alive.remaining.value_or(Millis(0));
          return Answer(std::move(settled));
        }
      }
      conflict = true;
      return Answer();
    }
    const auto& committed = std::get<store::Committed>(*done);
    ledger_.appended(committed.revision);
    remember(settled, bid, std::move(after), committed);
    return Answer(std::move(settled));
  }
}

// Those that an operator has reserved for this owner.
Result<std::optional<QueueService::Settled>> QueueService::claim_reserved(
    const api::ClaimRequest& request, const core::ClaimItem& bid) {
  using Answer = std::optional<Settled>;
  const std::string prefix = cat(reserved_prefix(request.queue), request.owner.text(), '\x1F');
  auto found = store_.scan({.prefix = prefix, .after = "", .limit = 8, .backwards = false});
  if (!found) return found.error();
  for (const store::Entry& entry : found->entries) {
    const auto id = id_of(request.queue, entry.key);
    if (!id) continue;
    auto seen = look(*id);
    if (!seen) return seen.error();
    if (!*seen || (*seen)->shelf != Shelf::Later) continue;
    bool conflict = false;
    auto settled = try_claim(**seen, bid, conflict);
    if (!settled) return settled.error();
    if (*settled) return settled;
  }
  return Answer();
}

Result<api::ClaimAnswer> QueueService::claimed(Settled settled) {
  ++claims_;
  api::ClaimedItem out{.item = view_of(settled.seen),
                       .granted_ttl = settled.granted_ttl,
                       .store_time = settled.seen.store_time};
  if (auto loaded = load(out.item, settled.seen.stored); !loaded) return loaded.error();
  return api::ClaimAnswer(std::move(out));
}

bool QueueService::due_for_tending(const core::QueueName& queue) {
  const MutexLock lock(mutex_);
  const auto& tended = candidates_[queue].tended;
  return !tended || clock_.mono() >= *tended + kTendEvery;
}

Result<api::ClaimAnswer> QueueService::claim(const api::ClaimRequest& request) {
  if (auto ok = api::check_claim(request); !ok) return ok.error();
  if (request.ttl.count() != 0 && request.ttl < store_.capabilities().smallest_ttl) {
    return invalid(cat("a ttl of ", format_duration(request.ttl), " is too short for this store; ",
                       format_duration(store_.capabilities().smallest_ttl), " is the least"));
  }
  if (auto known = config(request.queue); !known) return known.error();
  const core::ClaimItem bid{.owner = request.owner,
                            .claim = request.claim.hash(),
                            .ttl = request.ttl,
                            .start = request.start,
                            .reports = request.reports};
  bool looked_everywhere = false;
  bool bell = false;
  for (int tries = 0; tries < kMostTries; ++tries) {
    if (!looked_everywhere && due_for_tending(request.queue)) {
      if (auto done = tend(request.queue); !done) return done.error();
      looked_everywhere = true;
      auto mine = claim_reserved(request, bid);
      if (!mine) return mine.error();
      if (*mine) return claimed(std::move(**mine));
    }
    auto entry = candidate(request.queue);
    if (!entry) return entry.error();
    if (!*entry) {
      if (looked_everywhere && (!request.will_wait || bell)) break;
      if (looked_everywhere) {
        if (auto hung = hang_bell(request.queue); !hung) return hung.error();
        bell = true;
        looked_everywhere = false;
      }
      const MutexLock lock(mutex_);
      candidates_[request.queue].tended.reset();
      continue;
    }
    const auto id = id_of(request.queue, (*entry)->key);
    auto seen = id ? seen_of(*id, Shelf::Ready, **entry)
                   : Result<Seen>(unavailable("the store holds a damaged item"));
    bool conflict = false;
    auto settled =
        seen ? try_claim(*seen, bid, conflict) : Result<std::optional<Settled>>(seen.error());
    put_down(request.queue, (*entry)->key, conflict);
    if (!settled) return settled.error();
    if (*settled) return claimed(std::move(**settled));
  }
  const MutexLock lock(mutex_);
  return api::ClaimAnswer(api::EmptyQueue{.next_in = candidates_[request.queue].next_in});
}

// ---- the janitor

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
Status QueueService::tend_claims(const core::QueueName& queue, api::Tended& tended) {
  std::string after;
  {
    const MutexLock lock(mutex_);
    after = candidates_[queue].claimed_after;
  }
  auto found = store_.scan({.prefix = shelf_prefix(Shelf::Claimed, queue),
                            .after = after,
                            .limit = kTendPage,
                            .backwards = false});
  if (!found) return found.error();
  for (const store::Entry& entry : found->entries) {
    if (entry.timer.state != TimerState::Fired) {
      sooner(tended.next_in, entry.timer.remaining);
      continue;
    }
    const auto id = id_of(queue, entry.key);
    if (!id) continue;
    forget(*id);
    auto settled = settle(*id, core::TendItem{}, nullptr);
    if (!settled) return settled.error();
    if (*settled) count_moved(**settled, tended);
  }
  const MutexLock lock(mutex_);
  candidates_[queue].claimed_after =
      found->entries.size() < kTendPage ? std::string() : found->entries.back().key;
  return {};
}

Status QueueService::tend_paces(const core::QueueName& queue, api::Tended& tended) {
  auto found = store_.scan(
      {.prefix = pace_prefix(queue), .after = "", .limit = kTendPage, .backwards = false});
  if (!found) return found.error();
  for (const store::Entry& entry : found->entries) {
    if (entry.timer.state != TimerState::Fired) {
      sooner(tended.next_in, entry.timer.remaining);
      continue;
    }
    const auto id = id_of(queue, entry.key);
    if (!id) continue;
    forget(*id);
    auto settled = settle(*id, core::TendItem{}, nullptr);
    if (!settled) return settled.error();
    if (*settled) count_moved(**settled, tended);
  }
  return {};
}

// What has waited long enough goes to those that anybody may claim. No change of the item's own.
Result<bool> QueueService::promote_one(const Seen& seen) {
  StoredItem stored = seen.stored;
  stored.not_before.reset();
  const Owner reserved = stored.item.reserved_for;
  stored.item.reserved_for = {};
  Step leave;
  leave.kind = Step::Kind::Remove;
  leave.key = shelf_key(Shelf::Later, seen.id);
  leave.expect = store::Expect::Seen;
  leave.version = seen.version;
  leave.demand = TimerState::Fired;
  Step index;
  index.kind = Step::Kind::Remove;
  index.key = !reserved.empty()        ? reserved_key(seen.id, reserved)
              : seen.stored.not_before ? due_key(seen.id, *seen.stored.not_before)
                                       : std::string();
  Step arrive;
  arrive.kind = Step::Kind::Set;
  arrive.key = shelf_key(Shelf::Ready, seen.id);
  arrive.expect = store::Expect::Absent;
  arrive.value = encode(stored);
  arrive.timer = Step::TimerOp::Stop;
  std::vector<Step> steps = {std::move(leave), std::move(arrive)};
  if (!index.key.empty()) steps.push_back(std::move(index));
  auto done = store_.commit(steps, store::Sync::Relaxed);
  if (!done) return done.error();
  return std::holds_alternative<store::Committed>(*done);
}

Status QueueService::promote(const core::QueueName& queue, api::Tended& tended) {
  bool moved = false;
  for (const std::string& prefix : {due_prefix(queue), reserved_prefix(queue)}) {
    auto found =
        store_.scan({.prefix = prefix, .after = "", .limit = kDuePage, .backwards = false});
    if (!found) return found.error();
    for (const store::Entry& entry : found->entries) {
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
  if (auto ok = tend_claims(queue, tended); !ok) return ok.error();
  if (auto ok = tend_paces(queue, tended); !ok) return ok.error();
  if (auto ok = promote(queue, tended); !ok) return ok.error();
  const MutexLock lock(mutex_);
  Candidates& here = candidates_[queue];
  here.tended = now;
  here.next_in = tended.next_in;
  if (tended.requeued > 0) here.found.clear();
  return tended;
}

}  // namespace stint::service
