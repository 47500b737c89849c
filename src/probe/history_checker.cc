#include "probe/history_checker.h"

#include <algorithm>
#include <cstdint>

#include "base/text.h"

namespace stint::probe {
namespace {

constexpr std::size_t kNever = SIZE_MAX;

// Moves the token, or gives it out anew.
bool gives_token(const Operation& operation) {
  if (!operation.ok() || !operation.event.token.issued()) return false;
  return operation.is(verbs::kAcquire) || operation.is(verbs::kTransfer) ||
         operation.is(verbs::kRevoke);
}

// Lines of an operation, joined; a crash is kept apart.
struct Joined {
  std::map<std::string, std::vector<Operation>> by_resource;
  std::vector<std::size_t> crashes;
};

Joined join(const std::vector<HistoryEvent>& history) {
  std::map<std::string, Operation> open;
  Joined out;
  std::vector<Operation> all;
  for (std::size_t line = 0; line < history.size(); ++line) {
    const HistoryEvent& event = history[line];
    if (event.verb == verbs::kCrash) {
      out.crashes.push_back(line);
    } else if (event.phase == Phase::Invoke) {
      open[event.op] = Operation{event, line, kNever};
    } else {
      // An observation has one line only.
      const auto begun = open.find(event.op);
      all.push_back({event, begun == open.end() ? line : begun->second.invoked, line});
      if (event.phase == Phase::Info) all.back().answered = kNever;
      if (begun != open.end()) {
        if (!event.token.issued()) all.back().event.token = begun->second.event.token;
        if (!event.ends.issued()) all.back().event.ends = begun->second.event.ends;
        if (event.target.empty()) all.back().event.target = begun->second.event.target;
        if (event.key.empty()) all.back().event.key = begun->second.event.key;
        open.erase(begun);
      }
    }
  }
  for (auto& [op, operation] : open) {
    operation.event.phase = Phase::Info;
    all.push_back(operation);
  }
  std::ranges::sort(all, {}, &Operation::invoked);
  for (Operation& operation : all) {
    out.by_resource[operation.event.resource].push_back(std::move(operation));
  }
  return out;
}

}  // namespace

Timeline::Timeline(std::vector<Operation> operations, std::vector<std::size_t> crashes,
                   const CheckOptions& options)
    : operations_(std::move(operations)), crashes_(std::move(crashes)), options_(options) {
  for (const Operation& operation : operations_) {
    if (operation.event.token.issued()) by_token_[operation.event.token].push_back(&operation);
    if (operation.event.ends.issued()) by_end_[operation.event.ends].push_back(&operation);
  }
  find_grants();
  bound_times();
}

void Timeline::find_grants() {
  for (const Operation& operation : operations_) {
    if (!gives_token(operation) || operation.event.replayed) continue;
    grants_.push_back(&operation);
    first_grant_.emplace(operation.event.token, &operation);
  }
  // The answer that gave it out was lost: its repetition stands for it.
  for (const Operation& operation : operations_) {
    if (!gives_token(operation) || !operation.event.replayed) continue;
    if (first_grant_.emplace(operation.event.token, &operation).second)
      grants_.push_back(&operation);
  }
  std::ranges::stable_sort(grants_, {},
                           [](const Operation* grant) { return grant->event.store_time; });
}

void Timeline::bound_times() {
  std::vector<const Operation*> timed;
  for (const Operation& operation : operations_) {
    if (operation.event.store_time && !operation.unknown()) timed.push_back(&operation);
  }
  std::ranges::sort(timed, {}, &Operation::answered);
  std::optional<Nanos> bound;
  for (const Operation* operation : timed) {
    bound = std::max(bound.value_or(*operation->event.store_time), *operation->event.store_time);
    latest_by_answer_[operation->answered] = *bound;
  }
  std::ranges::sort(timed, std::greater<>(), &Operation::invoked);
  bound.reset();
  for (const Operation* operation : timed) {
    bound = std::min(bound.value_or(*operation->event.store_time), *operation->event.store_time);
    earliest_by_invoke_[operation->invoked] = *bound;
  }
}

const Operation* Timeline::next_grant(Token token) const {
  const auto next = first_grant_.upper_bound(token);
  return next == first_grant_.end() ? nullptr : next->second;
}

const std::vector<const Operation*>& Timeline::list(const ByToken& map, Token token) {
  static const std::vector<const Operation*> none;
  const auto found = map.find(token);
  return found == map.end() ? none : found->second;
}

bool Timeline::crash_may_forget(const Operation& operation) const {
  const auto crash =
      std::ranges::find_if(crashes_, [&](std::size_t line) { return operation.invoked < line; });
  if (crash == crashes_.end()) return false;
  const Operation* const next = next_grant(operation.event.token);
  return next == nullptr || next->answered > *crash;
}

bool Timeline::crashed_between(const Operation& before, const Operation& after) const {
  return std::ranges::any_of(
      crashes_, [&](std::size_t line) { return before.answered < line && line < after.invoked; });
}

bool Timeline::surely_before(const Operation& a, const Operation& b) const {
  if (a.ended_before(b)) return true;
  if (b.ended_before(a) || a.unknown() || b.unknown()) return false;
  return a.event.store_time && b.event.store_time && *a.event.store_time < *b.event.store_time;
}

std::optional<Nanos> Timeline::expiry(Token token, std::optional<Nanos> until) const {
  std::optional<Nanos> latest;
  for (const Operation* operation : of(token)) {
    const HistoryEvent& event = operation->event;
    const bool extends =
        operation->is(verbs::kRenew) || (gives_token(*operation) && !operation->is(verbs::kRevoke));
    if (!operation->ok() || !extends || !event.store_time || !event.ttl) continue;
    if (until && *event.store_time > *until) continue;
    latest = std::max(latest.value_or(Nanos::min()), *event.store_time + *event.ttl);
  }
  return latest;
}

std::optional<Nanos> Timeline::no_earlier(const Operation& operation) const {
  if (operation.event.store_time) return operation.event.store_time;
  const auto after = latest_by_answer_.lower_bound(operation.invoked);
  if (after == latest_by_answer_.begin()) return std::nullopt;
  return std::prev(after)->second;
}

std::optional<Nanos> Timeline::no_later(const Operation& operation) const {
  if (operation.event.store_time) return operation.event.store_time;
  if (operation.answered == kNever) return std::nullopt;
  const auto after = earliest_by_invoke_.upper_bound(operation.answered);
  if (after == earliest_by_invoke_.end()) return std::nullopt;
  return after->second;
}

void report(Violations& out, const Invariant& rule, std::string why,
            const std::vector<const Operation*>& operations) {
  Violation violation{rule.number, rule.name, std::move(why), {}};
  for (const Operation* operation : operations) {
    violation.operations.push_back(
        cat("line ", operation->invoked + 1, ": ", to_line(operation->event)));
  }
  out.push_back(std::move(violation));
}

std::string HistoryReport::text() const {
  std::string out = cat(violations.empty() ? "clean: " : "BROKEN: ", operations, " operations (",
                        unknown, " unknown)");
  for (const auto& [verb, count] : verbs) out += cat(' ', verb, '=', count);
  out += '\n';
  for (const Violation& violation : violations) {
    out += cat("invariant ", violation.invariant, " (", violation.name, "): ", violation.why, '\n');
    for (const std::string& operation : violation.operations) out += cat("    ", operation, '\n');
  }
  return out;
}

namespace {

void search(const Timeline& timeline, HistoryReport& out) {
  const OrderSearch found = search_order(timeline);
  out.searched += found.order == Order::Found ? 1U : 0U;
  out.given_up += found.order == Order::GivenUp ? 1U : 0U;
  if (found.order != Order::None) return;
  report(out.violations, {kLinearizable, "linearizable", nullptr},
         "no order of the operations explains this answer", {found.stuck});
}

}  // namespace

HistoryReport check_history(const std::vector<HistoryEvent>& history, const CheckOptions& options,
                            const std::vector<Invariant>& rules) {
  HistoryReport out;
  Joined joined = join(history);
  for (auto& [resource, operations] : joined.by_resource) {
    for (const Operation& operation : operations) {
      ++out.operations;
      out.unknown += operation.unknown() ? 1U : 0U;
      ++out.verbs[operation.event.verb];
    }
    const Timeline timeline(std::move(operations), joined.crashes, options);
    const std::size_t before = out.violations.size();
    for (const Invariant& rule : rules) rule.check(timeline, rule, out.violations);
    // What the rules have named needs no search.
    if (out.violations.size() == before) search(timeline, out);
  }
  return out;
}

}  // namespace stint::probe
