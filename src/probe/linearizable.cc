// Whether a resource's operations can have happened in one order: a search over situations, as in
// Lowe's "testing for linearizability", with unknown outcomes that fork.
//
// A situation is what the store may be in, and which of the operations under way have taken effect
// in it. The history is walked through line by line; where an answer comes, only those situations
// are kept in which that operation has had its effect, with that answer. None left: no order
// explains it. Two things keep the number small: an operation that changes nothing is let happen as
// soon as it can, and an unknown one gives only tokens that nobody was told of.
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
  std::set<std::size_t> done;

  auto key() const { return std::tie(token, held, reserved, until, done); }
  bool operator<(const Situation& other) const { return key() < other.key(); }
};

bool is_lease_verb(const Operation& operation) {
  return operation.is(verbs::kAcquire) || operation.is(verbs::kRenew) ||
         operation.is(verbs::kRelease) || operation.is(verbs::kCheck) ||
         operation.is(verbs::kTransfer) || operation.is(verbs::kRevoke);
}

class OrderSearcher {
 public:
  OrderSearcher(const Timeline& timeline, std::size_t within) : within_(within) {
    for (const Operation& operation : timeline.all()) {
      if (is_lease_verb(operation)) operations_.push_back(&operation);
    }
    for (const Operation* operation : operations_) {
      if (operation->ok() && gives(*operation)) told_.emplace(operation->event.token, operation);
    }
  }

  OrderSearch run() {
    std::vector<std::pair<std::size_t, std::size_t>> lines;  // line, operation
    for (std::size_t i = 0; i < operations_.size(); ++i) {
      lines.emplace_back(operations_[i]->invoked, i);
      if (!operations_[i]->unknown()) lines.emplace_back(operations_[i]->answered, i);
    }
    std::ranges::stable_sort(lines, {}, &std::pair<std::size_t, std::size_t>::first);
    std::set<Situation> now = {Situation{}};
    std::set<std::size_t> begun;
    OrderSearch out;
    for (const auto& [line, which] : lines) {
      const bool begins = begun.insert(which).second;
      if (begins) {
        under_way_.insert(which);
        if (!operations_[which]->unknown() && operations_[which]->answered == line) {
          // An observation: it begins and ends in one line.
        } else {
          continue;
        }
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
      drop_overtaken(now);
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
      if (seen.size() > within_) {
        given_up_ = true;
      } else if (seen.insert(situation).second) {
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
    }
    return out;
  }

  // What changes nothing happens at once where it can: that rules out nothing.
  void settle(Situation& situation) const {
    for (const std::size_t one : under_way_) {
      if (situation.done.contains(one) || operations_[one]->unknown()) continue;
      Situation next = situation;
      if (happen(*operations_[one], next) && next.key() == situation.key()) {
        situation.done.insert(one);
      }
    }
  }

  // Unknown ones of a token that is over can do nothing any more.
  void drop_overtaken(std::set<Situation>& now) {
    std::uint64_t lowest = UINT64_MAX;
    for (const Situation& situation : now) lowest = std::min(lowest, situation.token);
    std::vector<std::size_t> over;
    for (const std::size_t one : under_way_) {
      const Operation& operation = *operations_[one];
      const std::uint64_t rests_on =
          gives(operation) ? operation.event.ends.number() : operation.event.token.number();
      if (operation.unknown() && rests_on != 0 && rests_on < lowest) over.push_back(one);
    }
    if (over.empty()) return;
    std::set<Situation> kept;
    for (Situation situation : now) {
      for (const std::size_t one : over) situation.done.erase(one);
      kept.insert(std::move(situation));
    }
    for (const std::size_t one : over) under_way_.erase(one);
    now = std::move(kept);
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
    if (operation.unknown()) return happen_unseen(operation, lease);
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

  // The next token, if nobody but its own client was told of it.
  bool unseen_token(const Operation& operation, std::uint64_t token) const {
    const auto found = told_.find(Token(token));
    if (found == told_.end()) return true;
    const HistoryEvent& told = found->second->event;
    if (operation.is(verbs::kTransfer) && told.cause == "taken_up") return true;
    return told.replayed && told.client == operation.event.client;
  }

  bool happen_unseen(const Operation& operation, Situation& lease) const {
    const HistoryEvent& event = operation.event;
    if (gives(operation)) {
      const std::uint64_t token = lease.token + 1;
      const bool by_order = !operation.is(verbs::kAcquire);
      if (by_order && event.ends.number() != lease.token) return false;
      if (!unseen_token(operation, token)) return false;
      HistoryEvent unseen = event;
      unseen.store_time.reset();
      begin_lease(lease, unseen, token);
      lease.held = operation.is(verbs::kAcquire);
      lease.reserved = operation.is(verbs::kTransfer);
      return true;
    }
    if (lease.token != shown(operation).number()) return false;
    if (operation.is(verbs::kRelease)) lease.held = false;
    if (!operation.is(verbs::kCheck)) lease.until.reset();
    return true;
  }

  const std::size_t within_;
  std::vector<const Operation*> operations_;
  std::map<Token, const Operation*> told_;  // tokens that somebody was told of
  std::set<std::size_t> under_way_;
  bool given_up_ = false;
};

}  // namespace

OrderSearch search_order(const Timeline& timeline, std::size_t within) {
  return OrderSearcher(timeline, within).run();
}

}  // namespace stint::probe
