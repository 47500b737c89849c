// The rules 7 to 16 of history_checker.h: what guards, queues and schedules promise.
#include <algorithm>
#include <string>

#include "base/text.h"
#include "probe/history_checker.h"

namespace stint::probe {
namespace {

using Operations = std::vector<const Operation*>;
using Named = std::map<std::string, Operations>;

// Those of one verb, by the name of their target, item or slot.
Named by_name(const Timeline& timeline, std::string_view verb, std::string HistoryEvent::*name) {
  Named out;
  for (const Operation& operation : timeline.all()) {
    if (operation.is(verb)) out[operation.event.*name].push_back(&operation);
  }
  return out;
}

Named at_targets(const Timeline& timeline, std::string_view verb) {
  return by_name(timeline, verb, &HistoryEvent::target);
}

const Operations& at(const Named& all, const std::string& name) {
  static const Operations none;
  const auto found = all.find(name);
  return found == all.end() ? none : found->second;
}

// A write that this very request has brought about.
bool accepted(const Operation& operation) {
  return operation.ok() && !operation.event.replayed &&
         (operation.is(verbs::kWrite) || operation.is(verbs::kSeal));
}

// Walks through `later` in the order of their beginning, each with the largest one of `earlier`, by
// `less`, that had ended before it began; null: none.
template <class Less, class Visit>
void with_largest_before(Operations earlier, Operations later, const Less& less,
                         const Visit& visit) {
  std::ranges::sort(earlier, {}, &Operation::answered);
  std::ranges::sort(later, {}, &Operation::invoked);
  const Operation* largest = nullptr;
  auto next = earlier.begin();
  for (const Operation* one : later) {
    for (; next != earlier.end() && (*next)->ended_before(*one); ++next) {
      if (largest == nullptr || less(*largest, **next)) largest = *next;
    }
    visit(largest, *one);
  }
}

bool lower_token(const Operation& a, const Operation& b) { return a.event.token < b.event.token; }
bool lower_version(const Operation& a, const Operation& b) {
  return a.event.version < b.event.version;
}

std::map<std::string, Operations> accepts(const Timeline& timeline) {
  std::map<std::string, Operations> out;
  for (const Operation& operation : timeline.all()) {
    if (accepted(operation)) out[operation.event.target].push_back(&operation);
  }
  return out;
}

// 7: a fence never goes down, and is never below what was accepted or sealed.
void high_water(const Timeline& timeline, const Invariant& rule, Violations& out) {
  const auto raising = accepts(timeline);
  for (const auto& at_one : at_targets(timeline, verbs::kFence)) {
    const std::string& target = at_one.first;
    const Operations& seen = at_one.second;
    Operations earlier = at(raising, target);
    earlier.insert(earlier.end(), seen.begin(), seen.end());
    with_largest_before(earlier, seen, lower_token, [&](const Operation* high, const Operation& s) {
      if (high == nullptr || high->event.token <= s.event.token) return;
      report(out, rule,
             cat("the fence of ", quoted(target), " was ", s.event.token.number(), " after ",
                 high->event.token.number()),
             {high, &s});
    });
  }
}

// 8: nothing is accepted below what was accepted or sealed before.
void no_stale_accept(const Timeline& timeline, const Invariant& rule, Violations& out) {
  for (const auto& at_one : accepts(timeline)) {
    const std::string& target = at_one.first;
    const Operations& all = at_one.second;
    with_largest_before(all, all, lower_token, [&](const Operation* high, const Operation& one) {
      if (high == nullptr || high->event.token <= one.event.token || !one.is(verbs::kWrite)) return;
      report(out, rule,
             cat("token ", one.event.token.number(), " was accepted at ", quoted(target), " after ",
                 high->event.token.number()),
             {high, &one});
    });
  }
  for (auto [target, landed] : at_targets(timeline, verbs::kLanded)) {
    std::ranges::stable_sort(landed, {}, [](const Operation* o) { return o->event.version; });
    for (std::size_t i = 1; i < landed.size(); ++i) {
      if (!landed[i]->event.token.issued() || !lower_token(*landed[i], *landed[i - 1])) continue;
      report(out, rule,
             cat("token ", landed[i]->event.token.number(), " stands at ", quoted(target),
                 " after ", landed[i - 1]->event.token.number()),
             {landed[i - 1], landed[i]});
    }
  }
}

// 9: what a write rests on was read after the seal of its own token.
void epoch_contiguous(const Timeline& timeline, const Invariant& rule, Violations& out) {
  const Named reads = at_targets(timeline, verbs::kRead);
  const Named seals = at_targets(timeline, verbs::kSeal);
  using Reader = std::pair<std::string, Token>;
  for (const auto& [target, writes] : at_targets(timeline, verbs::kWrite)) {
    std::map<Token, const Operation*> sealed;  // the first of each token
    for (const Operation* seal : at(seals, target)) {
      if (!seal->ok()) continue;
      const auto [known, fresh] = sealed.emplace(seal->event.token, seal);
      if (!fresh && seal->answered < known->second->answered) known->second = seal;
    }
    std::map<Reader, Operations> of_reader;
    for (const Operation* read : at(reads, target)) {
      if (read->ok()) of_reader[{read->event.client, read->event.token}].push_back(read);
    }
    for (const Operation* write : writes) {
      if (!accepted(*write)) continue;
      const auto found = of_reader.find({write->event.client, write->event.token});
      if (found == of_reader.end()) continue;
      const Operation* last = nullptr;
      for (const Operation* read : found->second) {
        if (read->ended_before(*write)) last = read;
      }
      const auto seal = sealed.find(write->event.token);
      if (last == nullptr || (seal != sealed.end() && seal->second->ended_before(*last))) continue;
      report(out, rule,
             cat("what token ", write->event.token.number(), " wrote to ", quoted(target),
                 " rests on a read before its seal"),
             {last, write});
    }
  }
}

// Who may have been granted the token: the clients that were told so, or may have been.
bool may_hold(const Timeline& timeline, const Operation& user) {
  bool someone = false;
  for (const Operation* operation : timeline.of(user.event.token)) {
    const bool gives = operation->is(verbs::kAcquire) || operation->is(verbs::kTransfer) ||
                       operation->is(verbs::kRevoke);
    if (!gives || !operation->ok() || operation->invoked > user.answered) continue;
    if (!operation->is(verbs::kAcquire)) return true;  // by order: whoever it was given to
    if (operation->event.client == user.event.client) return true;
    someone = true;
  }
  if (someone) return false;
  return std::ranges::any_of(timeline.all(), [&](const Operation& operation) {
    const bool gives = operation.is(verbs::kAcquire) || operation.is(verbs::kTransfer) ||
                       operation.is(verbs::kRevoke);
    return gives && operation.unknown() && operation.invoked < user.answered;
  });
}

// 10: a token is used by whom it was granted to, and after it was.
void no_forged_token(const Timeline& timeline, const Invariant& rule, Violations& out) {
  for (const Operation& operation : timeline.all()) {
    if (!accepted(operation) || may_hold(timeline, operation)) continue;
    report(out, rule,
           cat("token ", operation.event.token.number(), " was accepted from ",
               quoted(operation.event.client), ", who had not been granted it"),
           {&operation});
  }
}

// 11: an item is completed once, by the newest claim; a write with one key takes effect once.
void one_completion(const Timeline& timeline, const Invariant& rule, Violations& out) {
  const Named claims = by_name(timeline, verbs::kClaim, &HistoryEvent::key);
  for (const auto& of_one : by_name(timeline, verbs::kComplete, &HistoryEvent::key)) {
    const std::string& item = of_one.first;
    const Operations& all = of_one.second;
    Operations done;
    std::ranges::copy_if(all, std::back_inserter(done),
                         [](const Operation* o) { return o->ok() && !o->event.replayed; });
    if (done.size() > 1) report(out, rule, cat(quoted(item), " was completed twice"), done);
    with_largest_before(
        at(claims, item), done, lower_version, [&](const Operation* claim, const Operation& one) {
          if (claim == nullptr || !claim->ok() || claim->event.version <= one.event.version) return;
          report(out, rule,
                 cat(quoted(item), " was completed under epoch ", one.event.version, " after ",
                     claim->event.version, " had claimed it"),
                 {claim, &one});
        });
  }
  for (const std::string_view verb : {verbs::kWrite, verbs::kLanded}) {
    std::map<std::pair<std::string, std::string>, Operations> by_key;
    for (const Operation& one : timeline.all()) {
      if (!one.is(verb) || !one.ok() || one.event.replayed || one.event.key.empty()) continue;
      by_key[{one.event.target, one.event.key}].push_back(&one);
    }
    for (const auto& [key, all] : by_key) {
      if (all.size() > 1) report(out, rule, cat(quoted(key.second), " took effect twice"), all);
    }
  }
}

// 12: what was acknowledged stands in the target, in one chain of versions.
void acknowledged_durable(const Timeline& timeline, const Invariant& rule, Violations& out) {
  const Named all_landed = at_targets(timeline, verbs::kLanded);
  for (const auto& [target, writes] : at_targets(timeline, verbs::kWrite)) {
    std::map<std::uint64_t, const Operation*> chain;
    for (const Operation* write : writes) {
      if (!accepted(*write) || write->event.version == 0) continue;
      const auto [other, fresh] = chain.emplace(write->event.version, write);
      if (fresh) continue;
      report(out, rule, cat("two writes made version ", write->event.version),
             {other->second, write});
    }
    const Operations& landed = at(all_landed, target);
    if (landed.empty()) continue;
    std::map<std::string, const Operation*> keys;
    std::map<std::uint64_t, const Operation*> versions;
    for (const Operation* one : landed) {
      if (one->event.version == 0) continue;  // "looked at": nothing stands there
      keys.emplace(one->event.key, one);
      versions.emplace(one->event.version, one);
    }
    for (const Operation* write : writes) {
      if (!accepted(*write) || write->event.key.empty() || keys.contains(write->event.key))
        continue;
      if (!write->ended_before(*landed.front())) continue;
      report(out, rule, cat("an acknowledged write is not in ", quoted(target)), {write});
    }
    std::uint64_t expected = 1;
    for (const auto& [version, one] : versions) {
      if (version != expected++) {
        report(out, rule, cat("version ", version - 1, " of ", quoted(target), " is missing"),
               {one});
        break;
      }
    }
  }
}

// 13: what was refused did not happen.
void failure_is_failure(const Timeline& timeline, const Invariant& rule, Violations& out) {
  const Named all_landed = at_targets(timeline, verbs::kLanded);
  for (const auto& [target, writes] : at_targets(timeline, verbs::kWrite)) {
    std::map<std::string, Operations> by_key;
    for (const Operation* write : writes) by_key[write->event.key].push_back(write);
    for (const Operation* one : at(all_landed, target)) {
      const Operations& tries = at(by_key, one->event.key);
      const bool refused = !tries.empty() && !one->event.key.empty() &&
                           std::ranges::all_of(tries, [](const Operation* o) {
                             return o->event.phase == Phase::Fail;
                           });
      if (!refused) continue;
      report(out, rule, cat("a write that was refused stands in ", quoted(target)),
             {tries.front(), one});
    }
  }
}

bool fenced(const Operation& operation) {
  return operation.event.phase == Phase::Fail && operation.event.cause == "stale";
}

// 14: a token that was refused as too old is never accepted again.
void fenced_is_final(const Timeline& timeline, const Invariant& rule, Violations& out) {
  for (const auto& [target, writes] : at_targets(timeline, verbs::kWrite)) {
    std::map<Token, const Operation*> refused;  // the first that ended
    for (const Operation* write : writes) {
      if (!fenced(*write)) continue;
      const auto [known, fresh] = refused.emplace(write->event.token, write);
      if (!fresh && write->answered < known->second->answered) known->second = write;
    }
    for (const Operation* write : writes) {
      const auto found = refused.find(write->event.token);
      if (!accepted(*write) || found == refused.end() || !found->second->ended_before(*write)) {
        continue;
      }
      report(out, rule,
             cat("token ", write->event.token.number(), " was accepted at ", quoted(target),
                 " after it had been fenced"),
             {found->second, write});
    }
  }
}

// 15: what is read is one write, whole, and never an earlier one than was there before.
void atomic_guard(const Timeline& timeline, const Invariant& rule, Violations& out) {
  const Named writes = at_targets(timeline, verbs::kWrite);
  for (const auto& at_one : at_targets(timeline, verbs::kRead)) {
    const std::string& target = at_one.first;
    const Operations& reads = at_one.second;
    std::map<std::string, const Operation*> began;
    Operations shown = reads;
    for (const Operation* write : at(writes, target)) {
      if (accepted(*write)) shown.push_back(write);
      if (write->event.phase != Phase::Fail) began.emplace(write->event.key, write);
    }
    std::erase_if(shown, [](const Operation* o) { return !o->ok(); });
    for (const Operation* read : reads) {
      if (!read->ok()) continue;
      const auto found = began.find(read->event.key);
      const bool written = found != began.end() && found->second->invoked < read->answered;
      if (read->event.cause == "torn" || (!read->event.key.empty() && !written)) {
        report(out, rule, cat("at ", quoted(target), " was read what nobody wrote"), {read});
      }
    }
    with_largest_before(shown, reads, lower_version,
                        [&](const Operation* high, const Operation& r) {
                          if (!r.ok() || high == nullptr || high->event.version <= r.event.version)
                            return;
                          report(out, rule,
                                 cat(quoted(target), " went back from version ",
                                     high->event.version, " to ", r.event.version),
                                 {high, &r});
                        });
  }
}

// 16: each slot has one end, each attempt one start.
void slots_accounted(const Timeline& timeline, const Invariant& rule, Violations& out) {
  const Named due = by_name(timeline, verbs::kDue, &HistoryEvent::key);
  Named slots = by_name(timeline, verbs::kSlot, &HistoryEvent::key);
  for (const auto& [slot, seen] : due) slots.try_emplace(slot);
  for (const auto& [slot, all] : slots) {
    Operations ends;
    std::map<std::uint64_t, Operations> starts;
    bool unknown = false;
    for (const Operation* one : all) {
      unknown = unknown || one->unknown();
      if (!one->ok() || one->event.replayed) continue;
      const bool started = one->event.cause == "started";
      (started ? starts[one->event.version] : ends).push_back(one);
    }
    if (ends.size() > 1) report(out, rule, cat("slot ", quoted(slot), " ended twice"), ends);
    for (const auto& [attempt, several] : starts) {
      if (several.size() < 2) continue;
      report(out, rule, cat("attempt ", attempt, " of ", quoted(slot), " started twice"), several);
    }
    const Operations& expected = at(due, slot);
    if (ends.empty() && !unknown && !expected.empty()) {
      report(out, rule, cat("slot ", quoted(slot), " was lost: it was due and has no end"),
             {expected.front()});
    }
  }
}

}  // namespace

std::vector<Invariant> guard_invariants() {
  return {
      {7, "high-water monotone and durable", high_water},
      {8, "no stale accept", no_stale_accept},
      {9, "epoch contiguity", epoch_contiguous},
      {10, "no forged token", no_forged_token},
      {11, "at most one completion", one_completion},
      {12, "acknowledged is durable", acknowledged_durable},
      {13, "definite failure is failure", failure_is_failure},
      {14, "fenced is final", fenced_is_final},
      {15, "atomic guard", atomic_guard},
      {16, "slot accounting", slots_accounted},
  };
}

const std::vector<Invariant>& invariants() {
  static const std::vector<Invariant> all = [] {
    std::vector<Invariant> both = lease_invariants();
    std::ranges::move(guard_invariants(), std::back_inserter(both));
    return both;
  }();
  return all;
}

}  // namespace stint::probe
