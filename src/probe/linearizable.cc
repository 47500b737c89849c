// Whether a resource's operations can have happened in one order: a search over situations, as in
// Lowe's "testing for linearizability", with unknown outcomes that fork.
//
// A situation is what the store may be in, and which of the operations under way have taken effect
// in it. The history is walked through line by line; where an answer comes, only those situations
// are kept in which that operation has had its effect, with that answer. None left: no order
// explains it. Three things keep the number small: an operation that changes nothing is let happen
// as soon as it can; an unknown one gives only tokens that nobody was told of; and of many unknown
// ones it is not asked which it was, for one is as good as another.
#include <algorithm>
#include <set>

#include "probe/history_checker.h"

namespace stint::probe {
namespace {

// The lease, and which of the operations under way have happened.
struct Situation {
  std::uint64_t token = 0;
  bool held = false;
  bool reserved = false;
  std::optional<Nanos> until;  // acknowledged expiry; empty while held: may have run out any time
  std::size_t unseen = 0;      // grants so far that nobody was told of
  std::set<std::size_t> done;  // of the known ones

  auto key() const { return std::tie(token, held, reserved, until, unseen, done); }
  bool operator<(const Situation& other) const { return key() < other.key(); }
};

bool is_lease_verb(const Operation& operation) {
  return operation.is(verbs::kAcquire) || operation.is(verbs::kRenew) ||
         operation.is(verbs::kRelease) || operation.is(verbs::kCheck) ||
         operation.is(verbs::kTransfer) || operation.is(verbs::kRevoke);
}

class OrderSearcher {
 public:
  OrderSearcher(const Timeline& timeline, std::size_t within)
      : timeline_(timeline), within_(within) {
    for (const Operation& operation : timeline.all()) {
      if (is_lease_verb(operation)) operations_.push_back(&operation);
    }
    for (const Operation* operation : operations_) {
      const HistoryEvent& event = operation->event;
      last_ = std::max({last_, event.token.number(), event.holder.number()});
      if (operation->ok() && gives(*operation)) told_.emplace(event.token, operation);
    }
  }

  OrderSearch run() {
    std::vector<std::pair<std::size_t, std::size_t>> lines;  // line, operation
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      lines.emplace_back(operations_[i]->invoked, i);
      if (!open_ended(*operations_[i])) lines.emplace_back(operations_[i]->answered, i);
    }
    std::ranges::stable_sort(lines, {}, &std::pair<std::size_t, std::size_t>::first);
    std::set<Situation> now = {Situation{}};
    std::set<std::size_t> begun;
    OrderSearch out;
    for (const auto& [line, which] : lines) {
      if (begun.insert(which).second) {
        if (open_ended(*operations_[which])) {
          note_unknown(*operations_[which]);
          continue;
        }
        under_way_.insert(which);
        // An observation begins and ends in one line.
        if (operations_[which]->answered != line || operations_[which]->invoked != line) continue;
      }
      now = after_answer(now, which);
      under_way_.erase(which);
      out.situations = std::max(out.situations, now.size());
      if (given_up_) {
        out.order = Order::GivenUp;
        return out;
      }
      if (now.empty()) {
        out.order = Order::None;
        out.stuck = operations_[which];
        return out;
      }
    }
    return out;
  }

 private:
  static bool gives(const Operation& operation) {
    return operation.is(verbs::kAcquire) || operation.is(verbs::kTransfer) ||
           operation.is(verbs::kRevoke);
  }
  static Token shown(const Operation& operation) { return operation.event.token; }

  // All that can be when `which` has been answered.
  std::set<Situation> after_answer(const std::set<Situation>& before, std::size_t which) {
    std::set<Situation> seen;
    std::vector<Situation> open;
    std::set<Situation> out;
    const auto reach = [&](Situation situation) {
      settle(situation);
      if (within_ == 0) {
        given_up_ = true;
      } else if (seen.insert(situation).second) {
        --within_;
        open.push_back(std::move(situation));
      }
    };
    for (const Situation& situation : before) reach(situation);
    while (!open.empty() && !given_up_) {
      Situation situation = std::move(open.back());
      open.pop_back();
      if (situation.done.contains(which)) {
        situation.done.erase(which);
        out.insert(std::move(situation));
        continue;
      }
      for (const std::size_t one : under_way_) {
        if (situation.done.contains(one)) continue;
        Situation next = situation;
        if (!happen(*operations_[one], next)) continue;
        next.done.insert(one);
        reach(std::move(next));
      }
      for (Situation& next : after_unknown(situation)) reach(std::move(next));
    }
    return out;
  }

  // What changes nothing happens at once where it can: that rules out nothing.
  void settle(Situation& situation) const {
    for (const std::size_t one : under_way_) {
      if (situation.done.contains(one)) continue;
      Situation next = situation;
      if (happen(*operations_[one], next) && next.key() == situation.key()) {
        situation.done.insert(one);
      }
    }
  }

  // It may have happened, or not: also a release that a crash may have lost.
  bool open_ended(const Operation& operation) const {
    if (operation.unknown()) return true;
    return operation.is(verbs::kRelease) && operation.ok() && timeline_.crash_may_forget(operation);
  }

  // The unknown ones that have begun: what they may do, at any time from now on.
  void note_unknown(const Operation& operation) {
    const HistoryEvent& event = operation.event;
    if (operation.is(verbs::kAcquire)) {
      ++unknown_acquires_;
      asked_.insert(event.client);
    } else if (gives(operation)) {
      (operation.is(verbs::kTransfer) ? unknown_transfers_ : unknown_revokes_)
          .insert(event.ends.number());
    } else if (operation.is(verbs::kRelease)) {
      unknown_releases_.insert(event.token.number());
    } else if (operation.is(verbs::kRenew)) {
      unknown_renewals_.insert(event.token.number());
    }
  }

  // What an unknown operation can make of it.
  std::vector<Situation> after_unknown(const Situation& lease) const {
    std::vector<Situation> out;
    if (unknown_releases_.contains(lease.token) && lease.held) {
      out.push_back(lease);
      out.back().held = false;
      out.back().until.reset();
    }
    if (unknown_renewals_.contains(lease.token) && lease.held && lease.until) {
      out.push_back(lease);
      out.back().until.reset();
    }
    const auto given = [&](bool held, bool reserved) {
      out.push_back(lease);
      ++out.back().token;
      ++out.back().unseen;
      out.back().held = held;
      out.back().reserved = reserved;
      out.back().until.reset();
    };
    if (lease.token > last_) return out;  // nothing was seen that this could explain
    const auto found = told_.find(Token(lease.token + 1));
    const HistoryEvent* told = found == told_.end() ? nullptr : &found->second->event;
    const bool free = told == nullptr || (told->replayed && asked_.contains(told->client));
    if (unknown_transfers_.contains(lease.token) && (free || told->cause == "taken_up")) {
      given(false, true);
    }
    if (unknown_revokes_.contains(lease.token) && free) given(false, false);
    const bool takes = lease.unseen < unknown_acquires_;
    if (takes && free) given(true, false);
    return out;
  }

  static bool stands(const Situation& lease, const HistoryEvent& at) {
    if (!lease.held && !lease.reserved) return false;
    return lease.until && at.store_time && *at.store_time < *lease.until;
  }

  static void prolong(Situation& lease, const HistoryEvent& event) {
    if (!event.store_time || !event.ttl) {
      lease.until.reset();
    } else if (lease.until) {
      lease.until = std::max(*lease.until, *event.store_time + *event.ttl);
    }
  }

  static void begin_lease(Situation& lease, const HistoryEvent& event, std::uint64_t token) {
    lease.token = token;
    lease.held = true;
    lease.reserved = false;
    lease.until.reset();
    if (event.store_time && event.ttl) lease.until = *event.store_time + *event.ttl;
  }

  // Whether it can happen now with the answer that it got; what it changes.
  bool happen(const Operation& operation, Situation& lease) const {
    if (operation.ok()) return succeed(operation, lease);
    const HistoryEvent& event = operation.event;
    if (operation.is(verbs::kAcquire)) {
      if (event.cause != "held") return true;
      return (lease.held || lease.reserved) && lease.token == event.holder.number();
    }
    const std::uint64_t token = gives(operation) ? event.ends.number() : shown(operation).number();
    if (event.cause == "superseded" || event.cause == "transferred" || event.cause == "revoked") {
      return lease.token > token;
    }
    if (event.cause == "released") return lease.token > token || !lease.held;
    return event.cause != "expired" || lease.token >= token;
  }

  static bool succeed(const Operation& operation, Situation& lease) {
    const HistoryEvent& event = operation.event;
    const std::uint64_t token = shown(operation).number();
    if (operation.is(verbs::kAcquire)) return be_granted(event, lease);
    if (operation.is(verbs::kTransfer) || operation.is(verbs::kRevoke)) {
      if (event.replayed && lease.token >= token) return true;
      if (lease.token != event.ends.number() || token <= lease.token) return false;
      begin_lease(lease, event, token);
      lease.held = false;
      lease.reserved = operation.is(verbs::kTransfer);
      return true;
    }
    if (event.replayed && lease.token >= token && !operation.is(verbs::kRelease)) return true;
    if (operation.is(verbs::kRelease)) {
      if (event.replayed && lease.token > token) return true;
      if (lease.token != token) return false;
      lease.held = false;
      lease.until.reset();
      return true;
    }
    if (lease.token != token || (!lease.held && !lease.reserved)) return false;
    if (operation.is(verbs::kRenew)) prolong(lease, event);
    return true;
  }

  static bool be_granted(const HistoryEvent& event, Situation& lease) {
    const std::uint64_t token = event.token.number();
    if (event.replayed && lease.token == token && lease.held) return true;
    if (lease.reserved && lease.token == token) {  // takes it up
      begin_lease(lease, event, token);
      return true;
    }
    const bool retakes = event.ends.issued() && event.ends.number() == lease.token;
    if (token <= lease.token || (stands(lease, event) && !retakes)) return false;
    begin_lease(lease, event, token);
    return true;
  }

  const Timeline& timeline_;
  std::size_t within_;  // situations left to look at
  std::vector<const Operation*> operations_;
  std::map<Token, const Operation*> told_;  // tokens that somebody was told of
  std::set<std::size_t> under_way_;         // known ones
  std::uint64_t last_ = 0;                  // the highest token that is mentioned
  std::size_t unknown_acquires_ = 0;
  std::set<std::string> asked_;  // who asked and does not know
  // By the token that they rest on.
  std::set<std::uint64_t> unknown_transfers_;
  std::set<std::uint64_t> unknown_revokes_;
  std::set<std::uint64_t> unknown_releases_;
  std::set<std::uint64_t> unknown_renewals_;
  bool given_up_ = false;
};

}  // namespace

OrderSearch search_order(const Timeline& timeline, std::size_t within) {
  return OrderSearcher(timeline, within).run();
}

}  // namespace stint::probe
