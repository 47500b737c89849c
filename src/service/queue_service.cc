#include "service/queue_service.h"

#include <algorithm>

#include "api/queue_json.h"
#include "base/text.h"
#include "service/once_records.h"
#include "service/settling.h"
#include "service/store_life.h"

namespace stint::service {

using store::Step;

namespace {

Error still_unknown(const core::ItemId& id) {
  return {Code::UnknownOutcome, cat("the store did not answer, and ", quoted(id.text()),
                                    " has moved on since: it may or may not have been done")};
}

// What is kept of the answer: the store's time tells of the moment at which it is given.
std::string body_of(api::ItemDone done) {
  done.store_time.reset();
  return api::to_json(done);
}

store::Sync sync_of(const core::ItemVerb& verb, const store::Capabilities& can) {
  if (std::holds_alternative<core::RenewItem>(verb)) {
    return can.relaxed_renewals ? store::Sync::Relaxed : store::Sync::Durable;
  }
  // What is lost of these is done again, or nobody was told of it.
  const bool relaxed = std::holds_alternative<core::ReleaseItem>(verb) ||
                       std::holds_alternative<core::TendItem>(verb);
  return relaxed ? store::Sync::Relaxed : store::Sync::Durable;  // G11
}

}  // namespace

QueueService::QueueService(store::Store& store, Ledger& ledger, const Clock& clock, Random& random,
                           std::vector<api::QueueConfig> declared)
    : store_(store),
      ledger_(ledger),
      clock_(clock),
      random_(random),
      declared_(std::move(declared)) {}

// The floor, and whether the store still gives anything out. Read once; every commit that relies on
// it checks that it is still so.   G1 G12
Result<QueueService::Ground> QueueService::ground() {
  {
    const MutexLock lock(mutex_);
    if (ground_) return *ground_;
  }
  const std::string& tail_key = store_.capabilities().tail_record;
  std::vector<std::string> keys = {std::string(kMetaKey)};
  if (!tail_key.empty()) keys.push_back(tail_key);
  auto reading = store_.read(keys);
  if (!reading) return reading.error();
  const auto& entries = reading->entries;
  if (!entries[0].present()) return unavailable("the store has lost its meta record");
  auto meta = decode_meta(entries[0].value);
  if (!meta) return meta.error();
  Ground ground{.floor = meta->floor, .usable = {}, .checks = {}};
  if (!tail_key.empty()) {
    auto floor = floor_after_tail(entries[1]);
    if (!floor) return floor.error();
    ground.floor = std::max(ground.floor, *floor);
  }
  for (const store::Entry& entry : entries) {
    Step& step = ground.checks.emplace_back();
    step.key = entry.key;
    step.expect = entry.present() ? store::Expect::Seen : store::Expect::Absent;
    step.version = entry.version;
  }
  const MutexLock lock(mutex_);
  // A recovered store is the same one in a new life; one that went back to an earlier life is not.
  const auto& before = meta->ancestors;
  if (!generation_ || std::ranges::find(before, *generation_) != before.end()) {
    generation_ = meta->generation;
  }
  ground.usable = check_usable(*meta, *generation_);
  // A refusal is asked for again: nobody would commit, and learn so that it is over.
  if (ground.usable) ground_ = ground;
  return ground;
}

void QueueService::forget_ground() {
  const MutexLock lock(mutex_);
  ground_.reset();
}

void QueueService::keep_in_mind(const Seen& seen) {
  constexpr std::size_t kMostKnown = 65'536;
  const MutexLock lock(mutex_);
  if (known_.size() >= kMostKnown) known_.clear();
  known_.insert_or_assign(seen.id.text(), seen);
}

void QueueService::forget(const core::ItemId& id) {
  const MutexLock lock(mutex_);
  known_.erase(id.text());
}

// What this service wrote last, if it was a claim: decided on without reading. The commit expects
// its version and, where it matters, a running timer.
std::optional<QueueService::Seen> QueueService::assume(const core::ItemId& id) {
  const MutexLock lock(mutex_);
  const auto known = known_.find(id.text());
  if (known == known_.end()) return std::nullopt;
  Seen seen = known->second;
  seen.timers.alive.state = TimerState::Running;
  seen.assumed = true;
  return seen;
}

// What the law says of the item as it was seen.
Result<QueueService::Attempt> QueueService::judge(Seen seen, const core::ItemVerb& verb) {
  core::Context context{.floor = {}, .now_wall = wall_of(seen)};
  std::vector<Step> checks;
  // It moves the epoch; or comes late, when the item may have been moved to another store.
  const bool late = seen.stored.item.state != core::ItemState::Claimed &&
                    !std::holds_alternative<core::TendItem>(verb);
  if (std::holds_alternative<core::ItemOrder>(verb) || late) {
    auto base = ground();
    if (!base) return base.error();
    if (!base->usable) return base->usable.error();
    context.floor = base->floor;
    checks = base->checks;
  }
  auto decision = core::decide({seen.stored.item, seen.timers}, verb, context);
  return Attempt{.settled = {.decision = std::move(decision), .seen = std::move(seen)},
                 .after = {},
                 .checks = std::move(checks),
                 .now = context.now_wall};
}

// What the verb adds; what its commit will name is written.
Result<QueueService::Extra> QueueService::make_extra(const Asked& asked, const Seen& seen) {
  if (!asked.extra) return Extra();
  auto extra = asked.extra(seen);
  if (!extra) return extra.error();
  for (std::size_t at = 0; at < extra->before.size(); at += kStepsAhead) {
    const auto from = extra->before.begin() + static_cast<std::ptrdiff_t>(at);
    const std::size_t end = std::min(at + kStepsAhead, extra->before.size());
    auto ahead = store_.commit({from, extra->before.begin() + static_cast<std::ptrdiff_t>(end)},
                               store::Sync::Relaxed);
    if (!ahead) {
      discard(extra->before);  // no commit that names them was sent
      return ahead.error();
    }
  }
  return extra;
}

// One commit under everything that was seen. REQUIRES: there is a change.
Result<store::CommitAnswer> QueueService::carry_out(Attempt& attempt, const core::ItemVerb& verb,
                                                    const Asked& asked, Ahead& unsure) {
  const Seen& seen = attempt.settled.seen;
  const core::ItemChange& change = *attempt.settled.decision.change;
  auto made = make_extra(asked, seen);
  if (!made) return made.error();
  Extra& extra = *made;
  attempt.after = seen.stored;
  attempt.after.item = change.item;
  if (extra.checkpoint) attempt.after.checkpoint = *extra.checkpoint;
  if (extra.result) attempt.after.result = *extra.result;
  auto steps = plan(seen, verb, attempt.after, change);
  auto events = plan_events(seen, verb, change, attempt.now);
  const bool tells = !events.empty();
  for (auto* more : {&extra.steps, &attempt.checks, &events}) {
    std::move(more->begin(), more->end(), std::back_inserter(steps));
  }
  attempt.settled.follow_ups = std::move(extra.follow_ups);
  auto done = Keeper(store_, clock_, asked.once)
                  .commit(std::move(steps), sync_of(verb, store_.capabilities()), [&] {
                    Settled after = attempt.settled;
                    apply(after, attempt.after, Millis(0));
                    attempt.settled.kept = done_of(after);
                    return body_of(*attempt.settled.kept);
                  });
  const auto* committed = done ? std::get_if<store::Committed>(&*done) : nullptr;
  if (committed == nullptr) {
    // What may have been done names them; else they are rubbish, also where another request under
    // the same idempotency key was first.
    const bool unknown = !done && done.error().code == Code::UnknownOutcome;
    if (!unknown) discard(extra.before);
    if (unknown) std::move(extra.before.begin(), extra.before.end(), std::back_inserter(unsure));
    return done;
  }
  if (tells) ledger_.appended(committed->revision);
  // The item was as the unanswered ones expected it: they can no longer be made.
  discard(unsure);
  if (!extra.before.empty()) discard_results(seen.id, change.item.epoch, attempt.after.result);
  return done;
}

Result<std::optional<QueueService::Settled>> QueueService::settle(const core::ItemId& id,
                                                                  const core::ItemVerb& verb,
                                                                  const Asked& asked) {
  using Answer = std::optional<Settled>;
  const bool order = std::holds_alternative<core::ItemOrder>(verb);
  bool may_assume = !order;
  int unknowns = 0;
  Ahead unsure;
  for (int tries = 0; tries < kMostTries; ++tries) {
    auto assumed = may_assume ? assume(id) : std::nullopt;
    auto looked = assumed ? Result<std::optional<Seen>>(std::move(assumed)) : look(id);
    if (!looked) return unsettled(looked.error(), unknowns);
    if (!*looked) {
      if (unknowns > 0) return still_unknown(id);
      return Answer();
    }
    auto attempt = judge(std::move(**looked), verb);
    if (!attempt) return unsettled(attempt.error(), unknowns);
    Settled& settled = attempt->settled;
    if (!settled.decision.change) {
      if (settled.seen.assumed) {
        may_assume = false;  // only what was read can say no
        continue;
      }
      const bool no = settled.decision.outcome == core::ItemOutcome::Lost ||
                      settled.decision.outcome == core::ItemOutcome::Refused;
      if (unknowns > 0 && no) return still_unknown(id);
      settled.unknowns = unknowns;
      return Answer(std::move(settled));
    }
    may_assume = false;
    auto done = carry_out(*attempt, verb, asked, unsure);
    if (!done) {
      const bool again = done.error().code == Code::UnknownOutcome && ++unknowns < kMostUnknowns;
      if (!again) return unsettled(done.error(), unknowns);
      continue;
    }
    const auto* committed = std::get_if<store::Committed>(&*done);
    if (committed == nullptr) {
      if (!attempt->checks.empty() || order) forget_ground();
      continue;
    }
    remember(settled, verb, std::move(attempt->after), *committed);
    const bool waits = settled.seen.shelf == Shelf::Ready || settled.seen.shelf == Shelf::Later;
    if (waits && !settled.decision.change->dropped) ring(id.queue());
    return Answer(std::move(settled));
  }
  return unsettled(
      unavailable(cat("the item ", quoted(id.text()), " changes too fast to be committed to")),
      unknowns);
}

void QueueService::apply(Settled& settled, StoredItem after, Millis granted_ttl) const {
  const core::ItemChange& change = *settled.decision.change;
  Seen& seen = settled.seen;
  after.not_before.reset();
  if (change.delay.count() > 0) after.not_before = wall_of(seen) + change.delay;
  seen.stored = std::move(after);
  seen.shelf = shelf_of(change.item, change.delay.count() > 0);
  settled.granted_ttl = granted_ttl;
  const bool started = change.alive.op == core::TimerPlan::Op::Start ||
                       change.alive.op == core::TimerPlan::Op::Extend;
  if (started && settled.granted_ttl.count() == 0) settled.granted_ttl = change.alive.length;
  if (seen.assumed) seen.timers.alive.remaining.reset();  // not read
  seen.timers = core::timers_after(seen.timers, change, settled.granted_ttl);
}

// What the world is after the commit. The item's own record is the commit's first step, or the
// second when it went to another shelf.
void QueueService::remember(Settled& settled, const core::ItemVerb& verb, StoredItem after,
                            const store::Committed& done) {
  const core::ItemChange& change = *settled.decision.change;
  Seen& seen = settled.seen;
  const Shelf to = shelf_of(change.item, change.delay.count() > 0);
  const std::size_t at = to == seen.shelf || change.dropped ? 0 : 1;
  if (!std::holds_alternative<core::RenewItem>(verb)) seen.version = done.versions[at];
  apply(settled, std::move(after), at < done.granted_ttl.size() ? done.granted_ttl[at] : Millis(0));
  seen.store_wall = done.store_wall;
  seen.store_time = done.store_time;
  seen.assumed = false;
  if (to == Shelf::Claimed && !change.dropped) {
    keep_in_mind(seen);
  } else {
    forget(seen.id);
  }
}

// A stale verb changes nothing, and is on record.   G8
void QueueService::note_stale(const core::ItemId& id, const core::ItemVerb& verb,
                              core::ItemCause cause, const core::Item* item) {
  ++stale_;
  api::Event event;
  event.at = clock_.wall();
  event.kind = "item_refused_stale";
  event.resource = id.text();
  if (item != nullptr) event.owner = item->owner.text();
  std::visit(
      [&](const auto& v) {
        if constexpr (requires { v.epoch; }) event.token = v.epoch.number();
      },
      verb);
  event.details.emplace_back("cause", std::string(core::word(cause)));
  if (item != nullptr) {
    event.details.emplace_back("epoch", static_cast<std::int64_t>(item->epoch.number()));
  }
  ledger_.refused(event);
}

api::ItemDone QueueService::done_of(const Settled& settled) const {
  return {.item = view_of(settled.seen),
          .repeated = settled.decision.outcome == core::ItemOutcome::Repeated,
          .granted_ttl = settled.granted_ttl,
          .follow_ups = settled.follow_ups,
          .store_time = settled.seen.store_time};
}

Result<api::ItemAnswer> QueueService::answer(const core::ItemId& id, const core::ItemVerb& verb,
                                             const Asked& asked) {
  auto settled = settle(id, verb, asked);
  if (!settled) return settled.error();
  if (!*settled) {
    note_stale(id, verb, core::ItemCause::NotThere, nullptr);
    return api::ItemAnswer(api::ItemLost{.cause = core::ItemCause::NotThere, .item = std::nullopt});
  }
  const Settled& it = **settled;
  const core::ItemOutcome outcome = it.decision.outcome;
  if (outcome == core::ItemOutcome::Lost || outcome == core::ItemOutcome::Refused) {
    note_stale(id, verb, it.decision.cause, &it.seen.stored.item);
    return api::ItemAnswer(api::ItemLost{.cause = it.decision.cause, .item = view_of(it.seen)});
  }
  api::ItemDone done = it.kept ? *it.kept : done_of(it);
  done.store_time = it.seen.store_time;
  if (!it.decision.change) {
    const Keeper keeper(store_, clock_, asked.once);
    auto kept = keeper.keep([&] { return body_of(done); });
    if (!kept) return unsettled(kept.error(), it.unknowns);
  }
  return api::ItemAnswer(std::move(done));
}

// ---- the worker's verbs

Result<api::ItemAnswer> QueueService::start(const api::ItemRef& ref, bool reports) {
  if (auto ok = api::check_ref(ref); !ok) return ok.error();
  return answer(ref.id, core::StartItem{ref.epoch, reports}, {.once = ref.once});
}

// Zero: as long as before, or none.
Status QueueService::check_time(std::string_view what, Millis length) const {
  if (auto ok = api::check_length(what, length); !ok) return ok;
  if (length.count() == 0 || length >= store_.capabilities().smallest_ttl) return {};
  return invalid(cat(what, " of ", format_duration(length), " is too short for this store; ",
                     format_duration(store_.capabilities().smallest_ttl), " is the least"));
}

Result<api::ItemAnswer> QueueService::renew(const api::ItemRef& ref, Millis ttl) {
  if (auto ok = api::check_ref(ref); !ok) return ok.error();
  if (auto ok = check_time("a ttl", ttl); !ok) return ok.error();
  return answer(ref.id, core::RenewItem{ref.epoch, ttl}, {});  // never kept
}

Result<api::ItemAnswer> QueueService::checkpoint(const api::ItemRef& ref, const std::string& marker,
                                                 const std::optional<std::string>& data) {
  if (auto ok = api::check_ref(ref); !ok) return ok.error();
  if (auto ok = api::check_marker(marker); !ok) return ok.error();
  if (data) {
    if (auto ok = api::check_data("a checkpoint", *data); !ok) return ok.error();
  }
  const auto extra_of = [&](const Seen& seen) {
    Extra extra;
    if (!data) return Result<Extra>(std::move(extra));
    extra.checkpoint = make_content(ref.id, "c", *data, kSmallRoom, extra.steps);
    // What the one before had more of.
    for (std::size_t i = extra.checkpoint->pieces; i < seen.stored.checkpoint.pieces; ++i) {
      Step& step = extra.steps.emplace_back();
      step.kind = Step::Kind::Remove;
      step.key = blob_key(ref.id, "c", i);
    }
    return Result<Extra>(std::move(extra));
  };
  return answer(ref.id, core::CheckpointItem{ref.epoch, marker},
                {.extra = extra_of, .once = ref.once});
}

Result<api::ItemAnswer> QueueService::complete(const api::Completion& completion) {
  if (auto ok = api::check_completion(completion); !ok) return ok.error();
  // Of a repetition without a key nobody knows which follow-ups they were but the ledger.
  auto done = answer(completion.ref.id,
                     core::CompleteItem{completion.ref.epoch, api::digest_of(completion)},
                     {.extra = [&](const Seen& seen) { return plan_follow_ups(completion, seen); },
                      .once = completion.ref.once});
  if (!done) return done;
  if (auto* yes = std::get_if<api::ItemDone>(&*done)) {
    if (!yes->repeated) ++completions_;
    std::set<core::QueueName> fed;
    for (const core::ItemId& id : yes->follow_ups) fed.insert(id.queue());
    for (const core::QueueName& queue : fed) ring(queue);
  }
  return done;
}

Result<api::ItemAnswer> QueueService::fail(const api::ItemRef& ref, const std::string& why,
                                           std::optional<Millis> later) {
  if (auto ok = api::check_ref(ref); !ok) return ok.error();
  if (auto ok = api::check_why(why, false); !ok) return ok.error();
  if (auto ok = api::check_length("'later'", later.value_or(Millis(0))); !ok) return ok.error();
  return answer(ref.id, core::FailItem{ref.epoch, why, later}, {.once = ref.once});
}

Result<api::ItemAnswer> QueueService::release(const api::ItemRef& ref) {
  if (auto ok = api::check_ref(ref); !ok) return ok.error();
  return answer(ref.id, core::ReleaseItem{ref.epoch}, {.once = ref.once});
}

Result<api::ItemAnswer> QueueService::order(const core::ItemId& id, const core::ItemOrder& order,
                                            const std::optional<api::Once>& once) {
  if (auto ok = api::check_order(order); !ok) return ok.error();
  if (auto ok = check_time("a time", order.hold); !ok) return ok.error();
  core::ItemOrder with_id = order;
  if (with_id.id.empty()) with_id.id = random_.id_hex();
  std::optional<Seen> dropped;
  const auto note_dropped = [&](const Seen& seen) {
    if (order.what == core::ItemOrder::What::Drop) dropped = seen;
    return Result<Extra>(Extra());
  };
  auto done = answer(id, with_id, {.extra = note_dropped, .once = once});
  if (done && std::holds_alternative<api::ItemDone>(*done) && dropped) {
    // The item is gone; what is left of its contents is rubbish, and costs nothing but room.
    [[maybe_unused]] const bool clean = clean_up(*dropped).has_value();
  }
  return done;
}

Status QueueService::clean_up(const Seen& dropped) {
  std::vector<Step> steps;
  const auto remove = [&](std::string key) {
    Step& step = steps.emplace_back();
    step.kind = Step::Kind::Remove;
    step.key = std::move(key);
  };
  remove(stop_key(dropped.id));
  while (true) {
    auto left = store_.scan({.prefix = blob_prefix(dropped.id),
                             .after = "",
                             .limit = kStepsAhead - 1,
                             .backwards = false});
    if (!left) return left.error();
    for (const store::Entry& entry : left->entries) remove(entry.key);
    if (steps.empty()) return {};
    auto done = store_.commit(steps, store::Sync::Relaxed);
    if (!done) return done.error();
    if (left->entries.empty()) return {};
    steps.clear();
  }
}

api::QueueTraffic QueueService::traffic() const {
  return {.puts = puts_,
          .claims = claims_,
          .completions = completions_,
          .stale = stale_,
          .parked = parked_};
}

Result<std::unique_ptr<Watch>> QueueService::watch(const core::QueueName& queue) {
  return store_.watch(bell_key(queue));
}

Result<std::unique_ptr<Watch>> QueueService::watch_item(const core::ItemId& id) {
  return store_.watch(stop_key(id));
}

}  // namespace stint::service
