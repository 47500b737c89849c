#include "queue/item_leases.h"

namespace stint::queue {
namespace {

core::Cause cause_of(core::ItemCause cause) {
  switch (cause) {
    case core::ItemCause::Expired: return core::Cause::Expired;
    case core::ItemCause::Stalled: return core::Cause::Stalled;
    case core::ItemCause::Superseded: return core::Cause::Superseded;
    case core::ItemCause::Spoken: return core::Cause::Released;
    case core::ItemCause::NeverIssued: return core::Cause::NeverIssued;
    case core::ItemCause::None:
    case core::ItemCause::NotYet:
    case core::ItemCause::Taken:
    case core::ItemCause::NotWaiting:
    case core::ItemCause::Ordered:
    case core::ItemCause::WrongEpoch:
    case core::ItemCause::Live:
    case core::ItemCause::Finished:
    case core::ItemCause::NotFinished:
    case core::ItemCause::NotThere: return core::Cause::Revoked;
  }
  return core::Cause::Revoked;
}

api::Lease lease_of(const api::QueueItem& item) {
  api::Lease lease;
  lease.resource = item.id.text();
  lease.held = item.live;
  lease.state = item.live ? core::State::Held : core::State::Free;
  lease.owner = item.item.owner;
  lease.token = item.item.epoch;
  lease.reason = item.item.reason;
  lease.by = item.item.by;
  lease.why = item.item.why;
  lease.ttl = item.ttl;
  lease.remaining = item.remaining;
  lease.acquired_at = item.item.claimed_at;
  lease.progress = item.item.progress;
  lease.progress_at = item.item.progress_at;
  return lease;
}

api::HoldAnswer answer_of(const api::ItemAnswer& answer, const std::string& name) {
  if (const auto* lost = std::get_if<api::ItemLost>(&answer)) {
    api::Lost out{.cause = cause_of(lost->cause), .lease = {}};
    if (lost->item) out.lease = lease_of(*lost->item);
    out.lease.resource = name;
    return out;
  }
  const auto& done = std::get<api::ItemDone>(answer);
  return api::Held{.lease = lease_of(done.item),
                   .granted_ttl = done.granted_ttl,
                   .store_time = done.store_time,
                   .replayed = false};
}

Error not_for_items() { return invalid("an item's claim is not moved by the verbs of leases"); }

}  // namespace

ItemLeases::ItemLeases(api::Queue& queue, api::Leases& others, api::ItemRef ref, Millis ttl)
    : queue_(queue), others_(others), ref_(std::move(ref)), name_(ref_.id.text()), ttl_(ttl) {}

// The work has completed the item itself. It may go on to its own end: nobody gets the item, unless
// an operator gives it a new epoch.
bool ItemLeases::completed(const api::QueueItem& item) const {
  return item.item.epoch == ref_.epoch && item.item.state == core::ItemState::Done;
}

api::HoldAnswer ItemLeases::held(const api::QueueItem& item) const {
  return api::Held{.lease = lease_of(item),
                   .granted_ttl = ttl_.count() > 0 ? ttl_ : item.item.limits.claim_ttl,
                   .store_time = std::nullopt,
                   .replayed = false};
}

Result<api::HoldAnswer> ItemLeases::renew(const api::Grip& grip, Millis ttl) {
  if (!mine(grip.resource)) return others_.renew(grip, ttl);
  if (completed_) return check(grip);
  auto answer = queue_.renew(ref_, ttl_);
  if (!answer) return answer.error();
  if (const auto* lost = std::get_if<api::ItemLost>(&*answer);
      lost != nullptr && lost->item && completed(*lost->item)) {
    completed_ = true;
    return held(*lost->item);
  }
  return answer_of(*answer, name_);
}

Result<api::HoldAnswer> ItemLeases::check(const api::Grip& grip) {
  if (!mine(grip.resource)) return others_.check(grip);
  auto found = queue_.show(ref_.id);
  if (!found) return found.error();
  if (!*found) {
    return api::HoldAnswer(api::Lost{.cause = core::Cause::Revoked, .lease = {}});
  }
  const api::QueueItem& item = **found;
  if (completed(item)) {
    completed_ = true;
    return held(item);
  }
  const bool same = item.item.epoch == ref_.epoch && !item.item.claim.empty();
  if (same && item.live) {
    return api::HoldAnswer(api::Held{.lease = lease_of(item),
                                     .granted_ttl = item.remaining.value_or(Millis(0)),
                                     .store_time = std::nullopt,
                                     .replayed = false});
  }
  core::Cause cause = core::Cause::Expired;
  if (!same) {
    cause = item.item.claim.empty() ? core::Cause::Revoked : core::Cause::Superseded;
  } else if (item.item.reason == core::Reason::Stalled) {
    cause = core::Cause::Stalled;
  }
  return api::HoldAnswer(api::Lost{.cause = cause, .lease = lease_of(item)});
}

Result<std::unique_ptr<Watch>> ItemLeases::watch(const ResourceName& resource) {
  return mine(resource) ? queue_.watch_item(ref_.id) : others_.watch(resource);
}

Result<api::AcquireAnswer> ItemLeases::acquire(const api::AcquireRequest& request) {
  if (mine(request.resource)) return not_for_items();
  return others_.acquire(request);
}
Result<api::HoldAnswer> ItemLeases::release(const api::Grip& grip, bool fence) {
  if (mine(grip.resource)) return not_for_items();
  return others_.release(grip, fence);
}
Result<api::HoldAnswer> ItemLeases::stall(const api::Grip& grip) {
  if (mine(grip.resource)) return not_for_items();
  return others_.stall(grip);
}
Result<api::HoldAnswer> ItemLeases::progress(const api::Grip& grip, const std::string& marker) {
  if (mine(grip.resource)) return not_for_items();
  return others_.progress(grip, marker);
}
Result<api::HoldAnswer> ItemLeases::transfer(const api::OrderRequest& order, const Owner& to,
                                             Millis ttl) {
  return others_.transfer(order, to, ttl);
}
Result<api::HoldAnswer> ItemLeases::revoke(const api::OrderRequest& order, core::Reason reason) {
  return others_.revoke(order, reason);
}
Result<api::Lease> ItemLeases::get(const ResourceName& resource) { return others_.get(resource); }
Result<std::vector<api::Lease>> ItemLeases::list(const api::Page& page) {
  return others_.list(page);
}
Result<std::vector<api::PastGrant>> ItemLeases::history(const ResourceName& resource,
                                                        std::size_t limit) {
  return others_.history(resource, limit);
}
Result<Token> ItemLeases::forget(const ResourceName& resource) { return others_.forget(resource); }

}  // namespace stint::queue
