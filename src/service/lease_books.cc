// What LeaseService reads out of the store, and what it forgets: get, list, history, forget, watch.
#include <algorithm>

#include "base/text.h"
#include "service/lease_plan.h"
#include "service/lease_service.h"
#include "service/lease_snapshot.h"
#include "service/once_records.h"
#include "service/settling.h"

namespace stint::service {

Result<api::Lease> LeaseService::get(const ResourceName& resource) {
  auto snapshot = look(resource);
  if (!snapshot) return snapshot.error();
  return lease_of(*snapshot);
}

Result<std::vector<api::Lease>> LeaseService::list(const api::Page& page) {
  auto owns = store_.scan({.prefix = own_key(page.prefix),
                           .after = page.after.empty() ? "" : own_key(page.after),
                           .limit = page.limit,
                           .backwards = false});
  if (!owns) return owns.error();
  std::vector<api::Lease> leases;
  constexpr std::size_t kOwnPrefix = 4;  // "own/"
  for (const store::Entry& entry : owns->entries) {
    auto name = ResourceName::parse(std::string_view(entry.key).substr(kOwnPrefix));
    if (!name) return name.error();
    auto lease = get(*name);
    if (!lease) return lease.error();
    leases.push_back(std::move(*lease));
  }
  return leases;
}

Result<std::vector<api::PastGrant>> LeaseService::history(const ResourceName& resource,
                                                          std::size_t limit) {
  auto snapshot = look(resource);
  if (!snapshot) return snapshot.error();
  std::vector<api::PastGrant> out;
  const core::Record& record = snapshot->seen.record;
  if (record.own) {
    api::PastGrant present{.token = record.own->token,
                           .owner = record.own->owner,
                           .reason = record.own->reason,
                           .by = record.own->by,
                           .why = record.own->why,
                           .acquired_at = record.own->acquired_at,
                           .ended_at = std::nullopt,
                           .ended = std::nullopt};
    if (const auto past = core::past_of(record, wall_of(*snapshot))) {
      present.ended = past->ended;
      present.ended_at = past->ended_at;
    }
    out.push_back(std::move(present));
  }
  auto ended = store_.scan(
      {.prefix = history_prefix(resource.text()), .after = "", .limit = limit, .backwards = true});
  if (!ended) return ended.error();
  for (const store::Entry& entry : ended->entries) {
    auto past = decode_past(entry.value);
    if (!past) return past.error();
    out.push_back(std::move(*past));
  }
  if (out.size() > limit) out.resize(limit);
  return out;
}

// The floor goes up to the token before the record goes, in one step: the name starts above it
// again. G1
Result<Token> LeaseService::forget(const ResourceName& resource,
                                   const std::optional<api::Once>& once) {
  for (int tries = 0; tries < kMostTries; ++tries) {
    auto snapshot = look(resource);
    if (!snapshot) return snapshot.error();
    const Seen& seen = snapshot->seen;
    if (!seen.record.own) return invalid(cat("there is no record of ", quoted(resource.text())));
    if (core::state_of(seen.record) != core::State::Free) {
      return Error{Code::Held,
                   cat(quoted(resource.text()), " is ", core::word(core::state_of(seen.record)),
                       "; only a free one can be forgotten")};
    }
    auto reading = store_.read({std::string(kMetaKey)});
    if (!reading) return reading.error();
    auto meta = decode_meta(reading->entries.front().value);
    if (!meta) return meta.error();
    meta->floor = std::max(meta->floor, seen.record.own->token);
    auto answer = Keeper(store_, clock_, once)
                      .commit(plan_forget(resource.text(), seen, encode(*meta),
                                          reading->entries.front().version, wall_of(*snapshot)),
                              store::Sync::Durable,
                              [&] { return cat("{\"floor\":", meta->floor.number(), "}"); });
    if (!answer) return answer.error();
    if (std::holds_alternative<store::Conflict>(*answer)) continue;
    // It is done, whatever becomes of the lines that are left.
    [[maybe_unused]] const bool dropped = drop_history(resource).has_value();
    return meta->floor;
  }
  return too_busy(resource);
}

// The history goes after the record: lines of a forgotten name harm nobody if this is cut short.
Status LeaseService::drop_history(const ResourceName& resource) {
  while (true) {
    auto lines = store_.scan({.prefix = history_prefix(resource.text()),
                              .after = "",
                              .limit = store::Store::kMaxSteps,
                              .backwards = false});
    if (!lines) return lines.error();
    if (lines->entries.empty()) return {};
    std::vector<store::Step> steps;
    for (const store::Entry& entry : lines->entries) {
      store::Step step;
      step.kind = store::Step::Kind::Remove;
      step.key = entry.key;
      steps.push_back(std::move(step));
    }
    auto answer = store_.commit(steps, store::Sync::Relaxed);
    if (!answer) return answer.error();
  }
}

Result<std::unique_ptr<Watch>> LeaseService::watch(const ResourceName& resource) {
  // Every change of ownership and every end writes this record; a renewal only touches it.
  return store_.watch(alive_key(resource.text()));
}

}  // namespace stint::service
