// Claiming.
//
// A claim must not read a million items: the items that may be claimed stand on a shelf of their
// own, in order, and a look there takes the first few. A service that is alone takes the first; one
// that meets others picks among them by chance, so that they do not all run after the same. What a
// look found is kept for a moment: the next claims of this process take from it. Every claim is
// proved by its commit.
#include <algorithm>

#include "base/text.h"
#include "service/once_records.h"
#include "service/queue_service.h"
#include "service/settling.h"

namespace stint::service {

namespace {

constexpr std::size_t kCandidates = 64;
constexpr Millis kCandidatesKept{50};
// How often a service that claims again and again looks after expired claims on the way.
constexpr Millis kTendEvery{100};
constexpr int kContention = 32;
constexpr int kMostPages = 100;

}  // namespace

// `contested`: of those that another thread of this service is claiming, too, if there are no
// others: the one who asks again under its key must not be told that there is nothing.
Result<std::optional<store::Entry>> QueueService::candidate(const core::QueueName& queue,
                                                            bool contested) {
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
  std::optional<store::Entry> in_hand;
  for (store::Entry& entry : found->entries) {
    if (!here.in_hand.contains(entry.key)) {
      here.found.push_back(std::move(entry));
    } else if (contested && !in_hand) {
      in_hand = std::move(entry);
    }
  }
  auto taken = take();
  return taken ? taken : in_hand;
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
Result<std::optional<QueueService::Settled>> QueueService::try_claim(
    const Seen& seen, const core::ClaimItem& bid, const std::optional<api::Once>& once,
    bool& conflict) {
  using Answer = std::optional<Settled>;
  conflict = false;
  for (int unknowns = 0;;) {
    auto base = ground();
    if (!base) return unsettled(base.error(), unknowns);
    if (!base->usable) return unsettled(base->usable.error(), unknowns);
    const WallTime now = wall_of(seen);
    Settled settled{.decision = core::decide({seen.stored.item, seen.timers}, bid,
                                             {.floor = base->floor, .now_wall = now}),
                    .seen = seen};
    if (!settled.decision.change) return Answer();
    StoredItem after = seen.stored;
    after.item = settled.decision.change->item;
    auto steps = plan(seen, bid, after, *settled.decision.change);
    if (once) {
      const KeptItem kept{.digest = {}, .at = now, .id = seen.id, .epoch = after.item.epoch};
      steps.push_back(keep_item(*once, kept));
    }
    steps.insert(steps.end(), base->checks.begin(), base->checks.end());
    const std::size_t ground_at = steps.size() - base->checks.size();
    for (auto& event : plan_events(seen, bid, *settled.decision.change, now)) {
      steps.push_back(std::move(event));
    }
    auto done = store_.commit(steps, store::Sync::Durable);
    if (!done) {
      if (done.error().code != Code::UnknownOutcome || ++unknowns >= kMostUnknowns) {
        return unsettled(done.error(), unknowns);
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
    auto settled = try_claim(**seen, bid, request.once, conflict);
    if (!settled) return settled.error();
    if (*settled) return settled;
  }
  return Answer();
}

Result<api::ClaimAnswer> QueueService::claimed(const Settled& settled) {
  ++claims_;
  api::ClaimedItem out{.item = view_of(settled.seen),
                       .granted_ttl = settled.granted_ttl,
                       .store_time = settled.seen.store_time};
  // It is claimed; that its contents cannot be read now does not undo that.
  if (auto loaded = load(out.item, settled.seen.stored); !loaded) {
    return Error{Code::UnknownOutcome, loaded.error().message};
  }
  return api::ClaimAnswer(std::move(out));
}

Result<std::optional<api::ClaimAnswer>> QueueService::claimed_before(
    const api::ClaimRequest& request) {
  using Answer = std::optional<api::ClaimAnswer>;
  if (!request.once) return Answer();
  auto kept = find_kept_item(store_, *request.once);
  if (!kept) return kept.error();
  if (!*kept) return Answer();
  auto seen = look((*kept)->id);
  if (!seen) return seen.error();
  if (!*seen) {
    return Error{Code::Lost, cat("this claim was given ", quoted((*kept)->id.text()),
                                 ", which an operator has dropped since")};
  }
  api::ClaimedItem out{
      .item = view_of(**seen), .replayed = true, .age = age_of(**kept, clock_.wall())};
  const core::Item& item = (*seen)->stored.item;
  const bool mine = item.epoch == (*kept)->epoch && item.claim.matches(request.claim.hash());
  if (mine && out.item.live) out.granted_ttl = out.item.remaining.value_or(Millis(0));
  // It is over: what it was given is still told, and each of its verbs will be refused.
  out.item.item.epoch = (*kept)->epoch;
  if (auto loaded = load(out.item, (*seen)->stored); !loaded) return loaded.error();
  return Answer(std::move(out));
}

bool QueueService::due_for_tending(const core::QueueName& queue) {
  const MutexLock lock(mutex_);
  const auto& tended = candidates_[queue].tended;
  return !tended || clock_.mono() >= *tended + kTendEvery;
}

Result<api::ClaimAnswer> QueueService::claim(const api::ClaimRequest& request) {
  if (auto ok = api::check_claim(request); !ok) return ok.error();
  if (auto ok = check_time("a ttl", request.ttl); !ok) return ok.error();
  if (auto known = config(request.queue); !known) return known.error();
  const core::ClaimItem bid{.owner = request.owner,
                            .claim = request.claim.hash(),
                            .ttl = request.ttl,
                            .start = request.start,
                            .reports = request.reports,
                            .starts_later = request.starts_later};
  bool looked_everywhere = false;
  bool bell = false;
  int pages = 0;
  for (int tries = 0; tries < kMostTries; ++tries) {
    auto before = claimed_before(request);
    if (!before) return before.error();
    if (*before) return std::move(**before);
    if (!looked_everywhere && due_for_tending(request.queue)) {
      if (auto done = tend(request.queue); !done) return done.error();
      looked_everywhere = true;
      auto mine = claim_reserved(request, bid);
      if (!mine) return mine.error();
      if (*mine) return claimed(**mine);
    }
    auto entry = candidate(request.queue, request.once.has_value());
    if (!entry) return entry.error();
    if (!*entry) {
      // Who is about to say "nothing" has looked at all claims, not at one page of them.
      if (looked_everywhere && ++pages < kMostPages && in_the_middle(request.queue)) {
        if (auto done = tend(request.queue); !done) return done.error();
        continue;
      }
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
    auto settled = seen ? try_claim(*seen, bid, request.once, conflict)
                        : Result<std::optional<Settled>>(seen.error());
    put_down(request.queue, (*entry)->key, conflict);
    if (!settled) return settled.error();
    if (*settled) return claimed(**settled);
  }
  // Claimed meanwhile, under this very key.
  auto before = claimed_before(request);
  if (!before) return before.error();
  if (*before) return std::move(**before);
  const MutexLock lock(mutex_);
  return api::ClaimAnswer(api::EmptyQueue{.next_in = candidates_[request.queue].next_in});
}

}  // namespace stint::service
