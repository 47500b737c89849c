#include "service/ledger.h"

#include <algorithm>

#include "base/json_text.h"
#include "service/fence_records.h"
#include "service/once_records.h"
#include "service/records.h"
#include "service/settling.h"

namespace stint::service {
namespace {

// One commit of a trim removes at most this many, and one trim makes at most this many commits.
constexpr std::size_t kTrimStep = 60;
constexpr int kTrimCommits = 8;

// The body of the answer.
std::string recorded() { return R"({"recorded":true})"; }

std::int64_t minute_of(WallTime t) { return to_ms(t) / 60'000; }

}  // namespace

store::Step append_event(const api::Event& event) {
  store::Step step;
  step.kind = store::Step::Kind::Append;
  step.key = kLedgerPrefix;
  step.value = encode(event);
  return step;
}

Ledger::Ledger(store::Store& store, const Clock& clock, std::size_t keep)
    : store_(store), clock_(clock), keep_(keep) {}

Ledger::~Ledger() { write_due(true); }

Result<std::vector<api::Event>> Ledger::list(const api::EventQuery& query) {
  std::vector<api::Event> out;
  store::Store::ScanRange range{
      .prefix = std::string(kLedgerPrefix),
      .after = query.after.empty() ? "" : std::string(kLedgerPrefix) + query.after,
      .limit = kPage,
      .backwards = query.newest};
  while (out.size() < query.limit) {
    auto reading = store_.scan(range);
    if (!reading) return reading.error();
    for (const store::Entry& entry : reading->entries) {
      auto event = decode_event(entry.value);
      if (!event) return event.error();
      event->number = entry.key.substr(kLedgerPrefix.size());
      if (event->resource.starts_with(query.prefix)) out.push_back(std::move(*event));
      if (out.size() == query.limit) break;
    }
    if (reading->entries.size() < kPage) break;
    range.after = reading->entries.back().key;
  }
  if (query.newest) std::reverse(out.begin(), out.end());
  return out;
}

Status Ledger::write(const api::Event& event, const std::optional<api::Once>& once) {
  auto answer =
      Keeper(store_, clock_, once).commit({append_event(event)}, store::Sync::Relaxed, recorded);
  if (!answer) return answer.error();
  if (const auto* done = std::get_if<store::Committed>(&*answer)) appended(done->revision);
  return {};
}

namespace {

constexpr Millis kQuiet{60'000};

store::Step quiet_step(const store::Entry& seen, std::int64_t unsaid) {
  store::Step step;
  step.kind = store::Step::Kind::Set;
  step.key = seen.key;
  step.value = JsonText().field("unsaid", unsaid).done();
  step.expect = seen.present() ? store::Expect::Seen : store::Expect::Absent;
  step.version = seen.version;
  if (seen.timer.state == TimerState::Running) {
    step.demand = TimerState::Running;
  } else {
    step.timer = store::Step::TimerOp::Start;
    step.ttl = kQuiet;
  }
  return step;
}

}  // namespace

// A guard that refuses often is asked by a program in a loop: each of its processes would write a
// line of its own. So the quiet time is kept in the store.
Status Ledger::write_refusal(const api::Event& event, const std::string& target,
                             const std::optional<api::Once>& once) {
  constexpr int kMostTrims = 50;
  for (int tries = 0; tries < kMostTrims; ++tries) {
    auto reading = store_.read({quiet_key(target)});
    if (!reading) return reading.error();
    const store::Entry& seen = reading->entries.front();
    auto unsaid = seen.present() ? decode_unsaid(seen.value) : Result<std::int64_t>(0);
    if (!unsaid) return unsaid.error();
    const bool quiet = seen.timer.state == TimerState::Running;
    std::vector<store::Step> steps = {quiet_step(seen, quiet ? *unsaid + 1 : 0)};
    if (!quiet) {
      api::Event line = event;
      line.details.emplace_back("count", *unsaid + 1);
      steps.push_back(append_event(line));
    }
    auto answer =
        Keeper(store_, clock_, once).commit(std::move(steps), store::Sync::Relaxed, recorded);
    if (!answer) return answer.error();
    const auto* done = std::get_if<store::Committed>(&*answer);
    if (done == nullptr) continue;
    if (!quiet) appended(done->revision);
    return {};
  }
  return unavailable("the ledger's count of refusals changes too fast to be committed to");
}

Result<std::unique_ptr<Watch>> Ledger::watch() { return store_.watch(kLedgerPrefix); }

api::Event Ledger::line_of(const Counted& counted) {
  api::Event event = counted.event;
  event.details.emplace_back("count", counted.count);
  return event;
}

void Ledger::refused(const api::Event& event) {
  constexpr std::size_t kMostDue = 1000;
  const MutexLock lock(mutex_);
  Counted& counted = counted_[{event.resource, event.owner, event.kind}];
  if (minute_of(counted.event.at) != minute_of(event.at)) {
    // The minute before gets its own line, also when refusals come faster than flushes.
    if (counted.count > 0 && due_.size() < kMostDue) due_.push_back(line_of(counted));
    counted = {};
  }
  counted.event = event;
  ++counted.count;
}

void Ledger::flush() { write_due(false); }

void Ledger::write_due(bool all) {
  std::vector<api::Event> due;
  {
    const MutexLock lock(mutex_);
    due.swap(due_);
    const std::int64_t minute = minute_of(clock_.wall());
    for (auto at = counted_.begin(); at != counted_.end();) {
      Counted& counted = at->second;
      const bool over = all || minute_of(counted.event.at) != minute;
      if (counted.count > 0 && (!counted.first_written || over)) {
        due.push_back(line_of(counted));
        counted.count = 0;
        counted.first_written = true;
      }
      at = over ? counted_.erase(at) : std::next(at);
    }
  }
  // A refusal that cannot be written down is still a refusal: nothing is said about it.
  for (const api::Event& event : due) {
    if (!record(event)) return;
  }
}

// Every process appends a few and goes: which commit trims cannot be counted in one of them. One
// revision in 64 does it, spread by a multiplication.
void Ledger::appended(std::uint64_t revision) {
  if ((revision * 0x9E37'79B9'7F4A'7C15U) >> 58U != 0) return;
  // Many threads may come to it at once: one of them is enough.
  if (trimming_.exchange(true)) return;
  // The next one tries again.
  [[maybe_unused]] const bool trimmed = trim().has_value();
  trimming_ = false;
}

Status Ledger::trim() {
  auto count = store_.appended(std::string(kLedgerPrefix));
  if (!count) return count.error();
  for (int i = 0; i<kTrimCommits&& * count> keep_; ++i) {
    const std::size_t most = std::min<std::size_t>(kTrimStep, *count - keep_);
    auto oldest = store_.scan({.prefix = std::string(kLedgerPrefix),
                               .after = trimmed_to_,
                               .limit = most,
                               .backwards = false});
    if (!oldest) return oldest.error();
    if (oldest->entries.empty()) return {};
    std::vector<store::Step> steps;
    for (const store::Entry& entry : oldest->entries) {
      store::Step& step = steps.emplace_back();
      step.kind = store::Step::Kind::Remove;
      step.key = entry.key;
    }
    auto answer = store_.commit(steps, store::Sync::Relaxed);
    if (!answer) return answer.error();
    trimmed_to_ = oldest->entries.back().key;
    *count -= steps.size();
  }
  return {};
}

}  // namespace stint::service
