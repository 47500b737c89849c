// The rules 1 to 6 of history_checker.h, one function each.
#include <algorithm>
#include <string>

#include "base/text.h"
#include "probe/history_checker.h"

namespace stint::probe {
namespace {

// A reservation and its taking up carry one token: one grant.
bool takes_up(const Operation& reservation, const Operation& taken) {
  return reservation.is(verbs::kTransfer) && taken.is(verbs::kAcquire) &&
         reservation.event.token == taken.event.token;
}

// 1 and 2: a token that is not above one given out before. What lies between decides the name: with
// a crash of the store in between a token was forgotten, without one it was counted wrongly.
void tokens_grow(const Timeline& timeline, const Invariant& rule, Violations& out,
                 bool over_crash) {
  std::vector<const Operation*> by_answer = timeline.grants();
  std::ranges::sort(by_answer, {}, &Operation::answered);
  std::vector<const Operation*> by_invoke = timeline.grants();
  std::ranges::sort(by_invoke, {}, &Operation::invoked);
  const Operation* highest = nullptr;
  auto next = by_answer.begin();
  for (const Operation* grant : by_invoke) {
    for (; next != by_answer.end() && (*next)->ended_before(*grant); ++next) {
      if (highest == nullptr || (*next)->event.token > highest->event.token) highest = *next;
    }
    if (highest == nullptr || highest->event.token < grant->event.token) continue;
    if (takes_up(*highest, *grant)) continue;
    if (timeline.crashed_between(*highest, *grant) != over_crash) continue;
    report(out, rule,
           cat("token ", grant->event.token.number(), " was given out after ",
               highest->event.token.number()),
           {highest, grant});
  }
}

// Of two that overlap, the store's own time tells the order.
void overlapping_tokens_grow(const Timeline& timeline, const Invariant& rule, Violations& out) {
  std::vector<const Operation*> timed;
  std::ranges::copy_if(timeline.grants(), std::back_inserter(timed),
                       [](const Operation* grant) { return grant->event.store_time.has_value(); });
  std::ranges::stable_sort(timed, [](const Operation* a, const Operation* b) {
    return a->event.store_time < b->event.store_time;
  });
  for (std::size_t i = 1; i < timed.size(); ++i) {
    const Operation& first = *timed[i - 1];
    const Operation& second = *timed[i];
    const bool overlap = !first.ended_before(second) && !second.ended_before(first);
    const bool same_time = first.event.store_time == second.event.store_time;
    const bool grows = same_time ? first.event.token != second.event.token
                                 : first.event.token < second.event.token;
    if (!overlap || grows || takes_up(first, second)) continue;
    report(out, rule,
           cat("token ", second.event.token.number(), " was given out after ",
               first.event.token.number()),
           {&first, &second});
  }
}

void token_monotone(const Timeline& timeline, const Invariant& rule, Violations& out) {
  tokens_grow(timeline, rule, out, false);
  overlapping_tokens_grow(timeline, rule, out);
}

void token_durable(const Timeline& timeline, const Invariant& rule, Violations& out) {
  tokens_grow(timeline, rule, out, true);
}

bool shows_expiry(const Operation& operation) {
  return operation.is(verbs::kExpired) ||
         (operation.event.phase == Phase::Fail && operation.event.cause == "expired");
}

// The earliest moment at which something may have ended the grant of `token` before its time.
std::optional<Nanos> ended_early(const Timeline& timeline, Token token) {
  std::optional<Nanos> earliest;
  const auto count = [&](const Operation& operation) {
    // Without the store's time, or unknown: as early as it can have been.
    Operation earliest_case = operation;
    if (operation.unknown()) earliest_case.event.store_time.reset();
    const Nanos at = timeline.no_earlier(earliest_case).value_or(Nanos::min());
    earliest = std::min(earliest.value_or(Nanos::max()), at);
  };
  for (const Operation* operation : timeline.of(token)) {
    const bool released = operation->is(verbs::kRelease) && operation->event.phase != Phase::Fail;
    if (released || shows_expiry(*operation)) count(*operation);
  }
  for (const Operation* operation : timeline.ending(token)) {
    if (operation->event.phase != Phase::Fail) count(*operation);
  }
  return earliest;
}

// 3: no grant while an earlier one stands.
void exclusive(const Timeline& timeline, const Invariant& rule, Violations& out) {
  const Operation* longest = nullptr;  // the grant before that ends last
  Nanos until = Nanos::min();
  for (const Operation* grant : timeline.grants()) {
    const HistoryEvent& event = grant->event;
    if (!event.store_time) continue;
    if (longest != nullptr && *event.store_time < until && longest->event.token < event.token &&
        event.ends != longest->event.token) {
      report(out, rule,
             cat("token ", event.token.number(), " was granted ",
                 std::chrono::ceil<Millis>(until - *event.store_time).count(),
                 " ms before the end of token ", longest->event.token.number()),
             {longest, grant});
    }
    const auto expiry = timeline.expiry(event.token, std::nullopt);
    if (!expiry) continue;
    const Nanos end = std::min(*expiry, ended_early(timeline, event.token).value_or(*expiry));
    if (end > until) {
      until = end;
      longest = grant;
    }
  }
}

// 4: an expiry is seen no earlier than the last acknowledged ttl.
void no_early_expiry(const Timeline& timeline, const Invariant& rule, Violations& out) {
  for (const Operation& operation : timeline.all()) {
    if (!shows_expiry(operation)) continue;
    const auto at = timeline.no_later(operation);
    const auto expiry = timeline.expiry(operation.event.token, at);
    if (!at || !expiry || *at >= *expiry) continue;
    std::vector<const Operation*> involved;
    for (const Operation* other : timeline.of(operation.event.token)) {
      if (other->ok() && other->event.ttl) involved.push_back(other);
    }
    involved.push_back(&operation);
    report(out, rule,
           cat("token ", operation.event.token.number(), " had run out ",
               std::chrono::ceil<Millis>(*expiry - *at).count(), " ms before its time"),
           involved);
  }
}

// What ended the lease of `renewal` before it, for certain; null if nothing is known to have.
const Operation* end_before(const Timeline& timeline, const Operation& renewal) {
  for (const Operation* operation : timeline.of(renewal.event.token)) {
    const bool released = operation->is(verbs::kRelease) && operation->ok();
    const bool ended = released || shows_expiry(*operation);
    if (ended && timeline.surely_before(*operation, renewal)) return operation;
  }
  const Operation* next = timeline.next_grant(renewal.event.token);
  return next != nullptr && timeline.surely_before(*next, renewal) ? next : nullptr;
}

// The expiry that had passed when the renewal took effect. An unknown renewal may have moved it.
std::optional<Nanos> passed_expiry(const Timeline& timeline, const Operation& renewal) {
  const auto& late = timeline.options().fires_late_by;
  const auto& at = renewal.event.store_time;
  if (!late || !at) return std::nullopt;
  for (const Operation* other : timeline.of(renewal.event.token)) {
    const bool maybe = other->is(verbs::kRenew) && other->unknown();
    if (maybe && other->invoked < renewal.answered) return std::nullopt;
  }
  std::optional<Nanos> expiry = timeline.expiry(renewal.event.token, *at - Nanos(1));
  if (!expiry || *expiry + *late > *at) return std::nullopt;
  return expiry;
}

// 5: a renewal only prolongs what still stands, and never shortens it.
void never_resurrects(const Timeline& timeline, const Invariant& rule, Violations& out) {
  for (const Operation& renewal : timeline.all()) {
    if (!renewal.is(verbs::kRenew) || !renewal.ok()) continue;
    const HistoryEvent& event = renewal.event;
    if (const Operation* end = end_before(timeline, renewal)) {
      report(out, rule, cat("token ", event.token.number(), " was renewed after it had ended"),
             {end, &renewal});
      continue;
    }
    if (const auto expiry = passed_expiry(timeline, renewal)) {
      std::vector<const Operation*> involved = timeline.of(event.token);
      std::erase_if(involved, [&](const Operation* other) {
        return !other->ok() || other->invoked >= renewal.invoked;
      });
      involved.push_back(&renewal);
      report(out, rule,
             cat("token ", event.token.number(), " was renewed ",
                 std::chrono::ceil<Millis>(*event.store_time - *expiry).count(),
                 " ms after it had run out"),
             involved);
      continue;
    }
    if (!event.remaining || !event.store_time) continue;
    const auto before = timeline.expiry(event.token, *event.store_time - Nanos(1));
    if (before && *event.store_time + *event.remaining + Millis(1) < *before) {
      report(out, rule, cat("the renewal of token ", event.token.number(), " shortened it"),
             {&renewal});
    }
  }
}

bool release_asked_for(const Timeline& timeline, Token token, const Operation& before) {
  return std::ranges::any_of(timeline.of(token), [&](const Operation* operation) {
    return operation->is(verbs::kRelease) && operation->event.phase != Phase::Fail &&
           operation->invoked < before.answered;
  });
}

// A release need not be synced: the crash of a server may lose it, and the lease then runs out.
const Operation* release_before(const Timeline& timeline, Token token, const Operation& acquire) {
  for (const Operation* operation : timeline.of(token)) {
    const bool released = operation->is(verbs::kRelease) && operation->ok();
    if (!released || !operation->ended_before(acquire)) continue;
    if (!timeline.crash_may_forget(*operation)) return operation;
  }
  return nullptr;
}

// 6: only the present token releases, and a release that was acknowledged is one.
void release_exact(const Timeline& timeline, const Invariant& rule, Violations& out) {
  for (const Operation& operation : timeline.all()) {
    const HistoryEvent& event = operation.event;
    if (operation.is(verbs::kRelease) && operation.ok()) {
      const Operation* next = timeline.next_grant(event.token);
      if (next != nullptr && timeline.surely_before(*next, operation)) {
        report(out, rule, cat("token ", event.token.number(), " was released although superseded"),
               {next, &operation});
      }
    }
    if (event.phase != Phase::Fail) continue;
    if (event.cause == "released" && !release_asked_for(timeline, event.token, operation)) {
      report(out, rule,
             cat("token ", event.token.number(), " was released, and nobody asked for it"),
             {&operation});
    }
    if (!operation.is(verbs::kAcquire) || event.cause != "held") continue;
    if (const Operation* release = release_before(timeline, event.holder, operation)) {
      report(out, rule,
             cat("an acquire was refused because of token ", event.holder.number(),
                 ", which had been released"),
             {release, &operation});
    }
  }
}

}  // namespace

std::vector<Invariant> lease_invariants() {
  return {
      {1, "token monotone", token_monotone},
      {2, "token durable", token_durable},
      {3, "exclusive at the store", exclusive},
      {4, "no early expiry", no_early_expiry},
      {5, "renew never resurrects", never_resurrects},
      {6, "release exact and not lost", release_exact},
  };
}

}  // namespace stint::probe
