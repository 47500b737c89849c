// How LeaseService looks at a lease: its records read and decoded, and what it keeps in mind of its
// own commits, so that the next verb need not read or decode again. Nothing here is believed
// without the store: a commit expects the versions.
#include <algorithm>

#include "service/fence_records.h"
#include "service/lease_plan.h"
#include "service/lease_service.h"
#include "service/lease_snapshot.h"

namespace stint::service {
namespace {

// Leases that are kept in mind.
constexpr std::size_t kMostKnown = 65'536;

std::vector<std::string> keys_of(const std::string& r, const std::string& tail_key) {
  std::vector<std::string> keys;
  constexpr std::size_t kMost = 10;
  keys.reserve(kMost);
  keys.emplace_back(kMetaKey);
  for (auto* const key : {own_key, alive_key, work_key, cap_key, rest_key, cool_key}) {
    keys.push_back(key(r));
  }
  if (!tail_key.empty()) keys.push_back(tail_key);
  return keys;
}

}  // namespace

// Every look at a lease needs it, and it hardly ever changes.
Result<Meta> LeaseService::meta_of(const store::Entry& entry) {
  {
    const MutexLock lock(known_mutex_);
    if (decoded_from_ == entry.value) return decoded_;
  }
  auto meta = decode_meta(entry.value);
  if (!meta) return meta;
  const MutexLock lock(known_mutex_);
  // One that does not descend from ours is another store: what it grants is foreign to our targets,
  // and is to be told as such.
  const bool descends =
      std::ranges::find(meta->ancestors, *generation_.load()) != meta->ancestors.end();
  if (descends) generation_ = &generations_.emplace_back(meta->generation);
  decoded_from_ = entry.value;
  decoded_ = *meta;
  return meta;
}

// What this service wrote last need not be decoded again; the value says whether it is that.
Result<core::Ownership> LeaseService::own_of(const std::string& resource,
                                             const store::Entry& entry) {
  {
    const MutexLock lock(known_mutex_);
    const auto written = written_.find(resource);
    if (written != written_.end() && written->second.value == entry.value) {
      return written->second.own;
    }
  }
  return decode_own(entry.value);
}

void LeaseService::remember_written(const std::string& resource, const std::string& value,
                                    const core::Ownership& own) {
  const MutexLock lock(known_mutex_);
  if (written_.size() >= kMostKnown) written_.clear();
  Written& written = written_[resource];
  written.value = value;
  written.own = own;
}

namespace {

Status add_sealed(const store::Entry& entry, std::vector<std::string>& all,
                  std::vector<std::string>& ahead) {
  if (!entry.present()) return {};
  auto sealed = decode_sealed(entry.value);
  if (!sealed) return sealed.error();
  all = sealed->all();
  ahead = std::move(sealed->sealing);
  return {};
}

}  // namespace

std::vector<std::string> LeaseService::look_keys(const ResourceName& name, Further further,
                                                 const api::Once* once) const {
  auto keys = keys_of(name.text(), store_.capabilities().tail_record);
  if (once != nullptr) keys.push_back(once_key(*once));
  if (further == Further::Sealed) keys.push_back(sealed_key(name.text()));
  return keys;
}

Result<LeaseService::Snapshot> LeaseService::look(const ResourceName& name) {
  auto reading = store_.read(look_keys(name, Further::Nothing, nullptr));
  if (!reading) return reading.error();
  Snapshot out;
  if (auto ok = take_snapshot(name, Further::Nothing, nullptr, *reading, 0, out); !ok) {
    return ok.error();
  }
  return out;
}

Status LeaseService::take_snapshot(const ResourceName& name, Further further, const api::Once* once,
                                   const store::Reading& reading, std::size_t first,
                                   Snapshot& out) {
  const std::string& r = name.text();
  const std::string& tail_key = store_.capabilities().tail_record;
  const std::size_t once_at = tail_key.empty() ? 7 : 8;
  const std::size_t sealed_at = once_at + (once != nullptr ? 1 : 0);
  const store::Entry* const entries = reading.entries.data() + first;
  out.resource = r;
  out.store_wall = reading.store_wall;
  out.store_time = reading.store_time;
  if (!entries[0].present()) return unavailable("the store has lost its meta record");
  auto meta = meta_of(entries[0]);
  if (!meta) return meta.error();
  out.usable = check_usable(*meta, generation());
  out.floor = meta->floor;
  if (!tail_key.empty()) {
    auto floor = floor_after_tail(entries[7]);
    if (!floor) return floor.error();
    out.floor = std::max(out.floor, *floor);
    out.seen.tail_key = tail_key;
    out.seen.tail = entries[7].version;
  }
  out.generation = meta->generation;
  out.seen.meta = entries[0].version;
  out.seen.own = entries[1].version;
  out.seen.alive = entries[2].version;
  out.seen.work = entries[3].version;
  auto& record = out.seen.record;
  if (entries[1].present()) {
    auto own = own_of(r, entries[1]);
    if (!own) return own.error();
    record.own = std::move(*own);
    auto pulse = decode_pulse(entries[2].value);
    if (!pulse) return pulse.error();
    record.pulse = *pulse;
  }
  if (entries[3].present()) {
    auto work = decode_work(entries[3].value);
    if (!work) return work.error();
    record.work = std::move(*work);
  }
  if (once != nullptr && entries[once_at].present()) {
    auto kept = decode_kept(*once, entries[once_at].value);
    if (!kept) return kept.error();
    out.kept = std::move(*kept);
  }
  if (further == Further::Sealed) {
    if (auto ok = add_sealed(entries[sealed_at], out.sealed, out.sealing); !ok) return ok.error();
  }
  record.timers = {entries[2].timer, entries[4].timer, entries[5].timer, entries[6].timer};
  return {};
}

// The grant as this service gave it, if it is the one that the hint means: decided on at once,
// without reading, and the commit's expectations prove that the records are still those. The proof
// is compared with the grant and never with what the caller says that it was: a hint is no proof.
// G8
bool LeaseService::assume(const api::Grip& grip, Snapshot& out, std::optional<MonoTime> now) {
  if (!grip.hint || !grip.hint->plain) return false;
  const MutexLock lock(known_mutex_);
  const auto known = known_.find(grip.resource.text());
  if (known == known_.end()) return false;
  const auto& [seen, until] = known->second;
  if (seen.own != grip.hint->own || seen.alive != grip.hint->alive) return false;
  if (now && *now >= until) return false;
  out.resource = grip.resource.text();
  out.seen = seen;
  return true;
}

void LeaseService::keep_in_mind(const Settled& settled) {
  if (!settled.hint.plain) return;
  Seen seen = settled.after.seen;
  seen.own = settled.hint.own;
  seen.alive = settled.hint.alive;
  seen.record.timers = {};
  seen.record.timers.alive.state = TimerState::Running;
  const MonoTime until = clock_.mono() + settled.granted_ttl;
  const MutexLock lock(known_mutex_);
  if (known_.size() >= kMostKnown) known_.clear();
  known_.insert_or_assign(settled.after.resource, Known{std::move(seen), until});
}

void LeaseService::runs_on(const Settled& settled) {
  const MonoTime until = clock_.mono() + settled.granted_ttl;
  const MutexLock lock(known_mutex_);
  const auto known = known_.find(settled.after.resource);
  if (known != known_.end()) known->second.until = std::max(known->second.until, until);
}

// The first answer said that it stands, and so does the second, whatever has become of it since.
std::vector<store::Step> LeaseService::kept_standing(const api::Once& once, const Settled& settled,
                                                     const core::Verb& verb, WallTime now) const {
  const core::Outcome outcome = settled.decision.outcome;
  const bool stands = outcome == core::Outcome::Replayed || outcome == core::Outcome::EndedBefore ||
                      outcome == core::Outcome::MovedBefore;
  if (!stands) return {};
  auto steps = plan_steps(settled.after.resource, settled.after.seen, core::Change());
  steps.push_back(kept_answer(once, settled, verb, now));
  return steps;
}

// What a holder has is not known to a store that is refused; it stops at once.   G12
LeaseService::Settled LeaseService::restored(const ResourceName& resource) const {
  Settled settled;
  settled.decision = {core::Outcome::Lost, core::Cause::Restored, {}};
  settled.after.resource = resource.text();
  settled.after.generation = generation();
  return settled;
}

// The newest token that is known to have been issued through here or from this machine.
Token LeaseService::remembered(const std::string& resource) {
  Token newest;
  if (anchors_ != nullptr) {
    const auto anchor = anchors_->recall();
    if (anchor && *anchor && (*anchor)->newest.resource == resource) {
      newest = (*anchor)->newest.token;
    }
  }
  const MutexLock lock(known_mutex_);
  const auto written = written_.find(resource);
  return written == written_.end() ? newest : std::max(newest, written->second.own.token);
}

}  // namespace stint::service
