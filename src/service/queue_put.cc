// Queues, and putting items into them; who waits for one, and waking them.
#include <algorithm>

#include "api/queue_wire.h"
#include "base/text.h"
#include "service/once_records.h"
#include "service/queue_service.h"
#include "service/settling.h"

namespace stint::service {

using store::Step;

namespace {

constexpr Millis kConfigKept{1000};

Step unique_step(const api::PutRequest& request, const core::ItemId& id) {
  Step step;
  step.kind = Step::Kind::Set;
  step.key = unique_key(request.queue, request.unique);
  step.expect = store::Expect::Absent;
  step.value = id.text();
  return step;
}

// It may have been put already, and have moved on from where it was put.
void must_be_nowhere(const core::ItemId& id, std::vector<Step>& steps) {
  const std::string here = steps.front().key;
  for (const Shelf shelf : kShelves) {
    Step check;
    check.kind = Step::Kind::Check;
    check.key = shelf_key(shelf, id);
    check.expect = store::Expect::Absent;
    if (check.key != here) steps.push_back(std::move(check));
  }
}

}  // namespace

// ---- queues

Status QueueService::configure(const api::QueueConfig& config,
                               const std::optional<api::Once>& once) {
  if (auto ok = core::check_limits(config.limits); !ok) return ok;
  Step step;
  step.kind = Step::Kind::Set;
  step.key = queue_key(config.name);
  step.value = encode(config.limits);
  auto done = Keeper(store_, clock_, once).commit({step}, store::Sync::Durable, [&] {
    return api::to_json(config);
  });
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
  int unknowns = 0;
  auto answer = put_until_known(request, *limits, unknowns);
  if (!answer && unknowns > 0) answer.error().code = Code::UnknownOutcome;
  return answer;
}

api::PutAnswer QueueService::put_done(const core::ItemId& id) {
  ++puts_;
  note_put(id);
  ring(id.queue());
  return {.id = id, .existed = false};
}

// The item that has the unique key; empty: none.
Result<std::optional<core::ItemId>> QueueService::who_has(const api::PutRequest& request) {
  using Answer = std::optional<core::ItemId>;
  auto taken = store_.read({unique_key(request.queue, request.unique)});
  if (!taken) return taken.error();
  const store::Entry& entry = taken->entries.front();
  if (!entry.present()) return Answer();
  auto other = core::ItemId::parse(entry.value);
  if (!other) return unavailable("the store holds a damaged unique key");
  return Answer(std::move(*other));
}

namespace {

api::PutAnswer replayed(const KeptItem& kept, WallTime now) {
  return {.id = kept.id, .existed = kept.existed, .replayed = true, .age = age_of(kept, now)};
}

}  // namespace

// That its unique key is taken is an answer, too. False: another request under the same
// idempotency key was first.
Result<bool> QueueService::keep_existing(const api::PutRequest& request,
                                         const core::ItemId& other) {
  if (!request.once) return true;
  const KeptItem kept{.digest = {}, .at = clock_.wall(), .id = other, .epoch = {}, .existed = true};
  auto done = store_.commit({keep_item(*request.once, kept)}, store::Sync::Durable);
  if (!done) return done.error();
  return std::holds_alternative<store::Committed>(*done);
}

Result<api::PutAnswer> QueueService::put_until_known(const api::PutRequest& request,
                                                     const core::ItemLimits& limits,
                                                     int& unknowns) {
  std::optional<core::ItemId> id;
  for (int tries = 0; tries < kMostTries; ++tries) {
    auto base = ground();
    if (!base) return base.error();
    if (!base->usable) return base->usable.error();
    if (request.once) {
      auto kept = find_kept_item(store_, *request.once);
      if (!kept) return kept.error();
      if (*kept) return replayed(**kept, clock_.wall());
    }
    if (!id) {
      const MutexLock lock(mutex_);
      id = ids_.make(request.queue, request.priority, clock_.wall(), random_);
    }
    auto steps = plan_put(*id, request, limits, StoredItem());
    if (!steps) return steps.error();
    std::size_t unique_at = 0;
    if (!request.unique.empty()) {
      unique_at = steps->size();
      steps->push_back(unique_step(request, *id));
    }
    if (request.once) {
      const KeptItem kept{.digest = {}, .at = clock_.wall(), .id = *id, .epoch = {}};
      steps->push_back(keep_item(*request.once, kept));
    }
    if (unknowns > 0) must_be_nowhere(*id, *steps);
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
    if (conflict == nullptr) return put_done(*id);
    if (conflict->step >= ground_at) {
      forget_ground();
      continue;
    }
    // It is there: from the try whose answer was lost, or (hardly ever) another's of the same name.
    auto there = look(*id);
    if (!there) return there.error();
    if (unknowns > 0 && *there) return api::PutAnswer{.id = *id, .existed = false};
    if (unique_at > 0 && conflict->step == unique_at) {
      auto other = who_has(request);
      if (!other) return other.error();
      if (!*other) continue;  // it was dropped meanwhile
      auto kept = keep_existing(request, **other);
      if (!kept) return kept.error();
      if (!*kept) continue;  // the key was used meanwhile
      return api::PutAnswer{.id = **other, .existed = true};
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
// 30 s at the most. Not within it: many that check one absent record wait for each other on
// PostgreSQL (0.20 instead of 0.44 of the rate by hand).
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

}  // namespace stint::service
