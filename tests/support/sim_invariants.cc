#include "tests/support/sim_invariants.h"

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "service/records.h"

namespace stint::test {
namespace {

bool open(core::Standing standing) {
  return standing == core::Standing::Granted || standing == core::Standing::Reserved;
}

bool by_order(core::Reason reason) {
  switch (reason) {
    case core::Reason::Retaken:
    case core::Reason::Transferred:
    case core::Reason::TakenUp:
    case core::Reason::Revoked:
    case core::Reason::Cancelled:
    case core::Reason::Recovered: return true;
    case core::Reason::First:
    case core::Reason::Released:
    case core::Reason::Expired:
    case core::Reason::Stalled: return false;
  }
  return false;
}

}  // namespace

SimInvariants::SimInvariants(Scheduler& scheduler, store::Store& truth, const SimClock& clock,
                             std::vector<std::string> resources)
    : scheduler_(scheduler), truth_(truth), clock_(clock), resources_(std::move(resources)) {}

void SimInvariants::broken(const char* law, const std::string& resource, std::string_view what) {
  scheduler_.problem(cat(law, " of '", resource, "': ", what));
}

std::optional<SimInvariants::End> SimInvariants::end_of(const store::Entry& entry, Nanos now) {
  if (entry.timer.state == TimerState::None) return std::nullopt;
  const Nanos latest = now + *entry.timer.remaining;
  return End{latest - Millis(1) + Nanos(1), latest};
}

std::optional<SimInvariants::Seen> SimInvariants::look(const std::string& resource, Nanos& now) {
  const auto reading = truth_.read({service::own_key(resource), service::alive_key(resource),
                                    service::cap_key(resource), service::rest_key(resource),
                                    service::cool_key(resource)});
  CHECK(reading, "the truth must be readable");
  now = *reading->store_time;
  const auto& entries = reading->entries;
  if (!entries[0].present()) return std::nullopt;
  Seen seen;
  seen.own_version = entries[0].version;
  seen.own = *service::decode_own(entries[0].value);
  seen.standing = service::decode_pulse(entries[1].value)->standing;
  seen.alive = end_of(entries[1], now);
  seen.cap = end_of(entries[2], now);
  seen.rests_until = std::max(end_of(entries[3], now).value_or(End{}).earliest,
                              end_of(entries[4], now).value_or(End{}).earliest);
  return seen;
}

bool SimInvariants::surely_stands(const Seen& seen, Nanos at) {
  return open(seen.standing) && seen.alive && seen.alive->earliest > at &&
         (!seen.cap || seen.cap->earliest > at);
}

bool SimInvariants::may_stand(const Seen& seen, Nanos at) {
  return open(seen.standing) && seen.alive && seen.alive->latest > at &&
         (!seen.cap || seen.cap->latest > at);
}

void SimInvariants::observe() {
  for (const std::string& resource : resources_) {
    Nanos now{0};
    auto after = look(resource, now);
    const auto before = seen_.find(resource);
    if (!after) {
      if (before != seen_.end()) seen_.erase(before);  // forgotten; highest_ remembers
      continue;
    }
    if (after->own_version == (before == seen_.end() ? 0 : before->second.own_version)) {
      check_same_owner(resource, before->second, *after, now);
    } else {
      check_new_owner(resource, before == seen_.end() ? Seen{} : before->second, *after, now);
    }
    seen_[resource] = *after;
  }
  check_beliefs();
}

void SimInvariants::check_new_owner(const std::string& resource, const Seen& before,
                                    const Seen& after, Nanos now) {
  Token& highest = highest_[resource];
  const core::Reason reason = after.own.reason;
  const bool taken_up = reason == core::Reason::TakenUp;
  if (taken_up ? after.own.token != highest : after.own.token <= highest) {  // G1
    broken("G1", resource, cat("token ", after.own.token.number(), " after ", highest.number()));
  }
  highest = std::max(highest, after.own.token);
  if (after.standing != core::Standing::Granted) return;
  ++grants_;
  const bool allowed =
      reason == core::Reason::Retaken || (taken_up && before.standing == core::Standing::Reserved &&
                                          before.own.owner == after.own.owner);
  if (surely_stands(before, now) && !allowed) {
    broken("G2", resource, "granted while an earlier grant stands");
  }
  if (taken_up && !may_stand(before, now))
    broken("G2", resource, "a lapsed reservation was taken up");
  if (before.rests_until > now && reason != core::Reason::Retaken) {
    broken("G2", resource, "granted while it rests");
  }
}

void SimInvariants::check_same_owner(const std::string& resource, const Seen& before, Seen& after,
                                     Nanos now) {
  if (!may_stand(before, now) && surely_stands(after, now)) {
    broken("G3", resource, "revived after its end");
  }
  if (!surely_stands(before, now) || !open(after.standing)) return;
  if (after.alive->latest < before.alive->earliest) broken("G3", resource, "shortened");
  if (after.alive->earliest > before.alive->latest) ++renewals_;
  after.alive->earliest = std::max(after.alive->earliest, before.alive->earliest);
}

void SimInvariants::trusts(const std::string& actor, const std::string& resource, Token token,
                           MonoTime until) {
  beliefs_[actor] = {resource, token, until};
}

// While somebody trusts, nobody else may have been granted it, and the store's expiry lies beyond
// the trust. An operator may take it away at any time: that is what fences are for.
void SimInvariants::check_beliefs() {
  for (const auto& [actor, belief] : beliefs_) {
    if (scheduler_.now() >= belief.until) continue;
    const auto found = seen_.find(belief.resource);
    if (found == seen_.end()) {
      broken("G6", belief.resource, cat(actor, " trusts a lease that is not there"));
      continue;
    }
    const Seen& seen = found->second;
    if (seen.own.token > belief.token) {
      const bool ordered = seen.own.token == belief.token.next() && by_order(seen.own.reason);
      const bool long_ago = seen.own.token > belief.token.next();  // told when the next one came
      if (!ordered && !long_ago)
        broken("G6", belief.resource, cat("granted while ", actor, " trusts"));
      continue;
    }
    if (seen.standing != core::Standing::Granted) continue;
    Nanos end = seen.alive.value_or(End{}).latest;
    if (seen.cap) end = std::min(end, seen.cap->latest);
    const Nanos beyond = belief.until - clock_.true_time(MonoTime(end));
    if (beyond > Nanos(0)) {
      broken("G6", belief.resource,
             cat(actor, " trusts token ", belief.token.number(), ' ', beyond.count(),
                 " ns beyond its end"));
    }
  }
}

}  // namespace stint::test
