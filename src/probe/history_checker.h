// Checks a recorded history offline: which promise was broken, and by which operations.
//
// Tokens give a total order, so that nothing is searched: each rule is a pass over a resource's
// operations. "Before" means one of two things that cannot be wrong: the one's answer was recorded
// before the other was sent, or both carry the store's time and overlap. An unknown operation never
// breaks a rule; where it may have happened, it excuses what it may have caused.
//
//   1 token monotone             9 epoch contiguity
//   2 token durable             10 no forged token
//   3 exclusive at the store    11 at most one completion
//   4 no early expiry           12 acknowledged is durable
//   5 renew never resurrects    13 definite failure is failure
//   6 release exact             14 fenced is final
//   7 high-water monotone       15 atomic guard
//   8 no stale accept           16 slot accounting
//
// Beside the rules, a small search asks whether the acquires, renewals and releases of a resource
// can have happened in any one order (linearizable.cc). A further rule is one function and one line
// in invariants(). Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "probe/history.h"

namespace stint::probe {

// Both lines of an operation, joined.
struct Operation {
  HistoryEvent event;        // the last line; phase Invoke never: without an answer it is Info
  std::size_t invoked = 0;   // line numbers: the order of real time
  std::size_t answered = 0;  // SIZE_MAX: never

  bool ok() const { return event.phase == Phase::Ok; }
  bool unknown() const { return event.phase == Phase::Info; }
  bool ended_before(const Operation& other) const { return answered < other.invoked; }
  bool is(std::string_view verb) const { return event.verb == verb; }
};

struct CheckOptions {
  // How late a timer of the store may fire: a renewal that much after the expiry is no violation.
  // Empty: as late as it likes (etcd after a change of leader).
  std::optional<Nanos> fires_late_by = Millis(1);
};

struct Violation {
  int invariant = 0;
  std::string name;
  std::string why;
  std::vector<std::string> operations;  // one line each, as recorded
};

// One resource's operations in the order of their first lines, with what a rule needs to know of
// time.
class Timeline {
 public:
  Timeline(std::vector<Operation> operations, std::vector<std::size_t> crashes,
           const CheckOptions& options);

  const std::vector<Operation>& all() const { return operations_; }
  // Those that are known to have given out a token, by the store's time (those without it first).
  const std::vector<const Operation*>& grants() const { return grants_; }
  // The known grant with the lowest token above this one; null if there is none.
  const Operation* next_grant(Token token) const;
  // Those that name this token as their own, and those that would end its grant.
  const std::vector<const Operation*>& of(Token token) const { return list(by_token_, token); }
  const std::vector<const Operation*>& ending(Token token) const { return list(by_end_, token); }
  bool crashed_between(const Operation& before, const Operation& after) const;
  // What needs no sync, and was followed by no grant before the next crash: that may have lost it,
  // also if its answer was written down only after the crash.
  bool crash_may_forget(const Operation& operation) const;
  // Before in the store's own log, as far as that is certain.
  bool surely_before(const Operation& a, const Operation& b) const;
  // The latest expiry that was acknowledged for this token, by answers of the store up to `until`.
  std::optional<Nanos> expiry(Token token, std::optional<Nanos> until) const;
  // Bounds on the store's time of an operation that does not carry it.
  std::optional<Nanos> no_earlier(const Operation& operation) const;
  std::optional<Nanos> no_later(const Operation& operation) const;
  const CheckOptions& options() const { return options_; }

 private:
  using ByToken = std::map<Token, std::vector<const Operation*>>;
  static const std::vector<const Operation*>& list(const ByToken& map, Token token);
  void find_grants();
  void bound_times();

  std::vector<Operation> operations_;
  std::vector<std::size_t> crashes_;
  CheckOptions options_;
  std::vector<const Operation*> grants_;
  std::map<Token, const Operation*> first_grant_;
  ByToken by_token_;
  ByToken by_end_;
  std::map<std::size_t, Nanos> latest_by_answer_;    // line -> largest store time answered up to it
  std::map<std::size_t, Nanos> earliest_by_invoke_;  // line -> smallest store time sent from it on
};

using Violations = std::vector<Violation>;

struct Invariant {
  int number = 0;
  std::string name;
  std::function<void(const Timeline&, const Invariant&, Violations&)> check;
};
std::vector<Invariant> lease_invariants();  // 1 to 6
std::vector<Invariant> guard_invariants();  // 7 to 16
const std::vector<Invariant>& invariants();

// Searches an order in which each acquire, renew, release, check, transfer and revoke of the
// resource has the answer that it got; an unknown one happens in it, or not, or later. `within`:
// how many situations are looked at before it gives up.
enum class Order { Found, None, GivenUp };
struct OrderSearch {
  Order order = Order::Found;
  std::size_t situations = 0;
  const Operation* stuck = nullptr;  // None: the first whose answer fits nowhere
};
OrderSearch search_order(const Timeline& timeline, std::size_t within = 300'000);
constexpr int kLinearizable = 17;  // the number that a history without an order is reported under

struct HistoryReport {
  Violations violations;
  std::size_t operations = 0;
  std::size_t unknown = 0;
  std::size_t searched = 0;  // resources whose order was found
  std::size_t given_up = 0;  // too many ways to try
  std::map<std::string, std::size_t> verbs;
  // "clean: 812 operations (14 unknown)", or each violation with its operations.
  std::string text() const;
};

HistoryReport check_history(const std::vector<HistoryEvent>& history,
                            const CheckOptions& options = {},
                            const std::vector<Invariant>& rules = invariants());

// For further rules: notes a violation with the lines of the operations involved.
void report(Violations& out, const Invariant& rule, std::string why,
            const std::vector<const Operation*>& operations);

}  // namespace stint::probe
