#include "tests/support/fault_store.h"

#include <algorithm>

#include "base/text.h"

namespace stint::test {
namespace {

Error unknown() { return {Code::UnknownOutcome, "the answer was lost"}; }

}  // namespace

FaultStore::FaultStore(Scheduler& scheduler, const SimClock& clock, const FaultPlan& plan,
                       Sabotage sabotage)
    : scheduler_(scheduler), clock_(clock), plan_(plan), sabotage_(sabotage), truth_(clock) {}

bool FaultStore::chance(unsigned per_thousand, const char* fault) {
  if (!faulty_ || scheduler_.random().below(1000) >= per_thousand) return false;
  ++faults_[fault];
  scheduler_.note(cat("fault ", fault));
  return true;
}

void FaultStore::pass_time() {
  const auto most = static_cast<std::uint64_t>(Nanos(plan_.slowest).count());
  scheduler_.interleave(Nanos(scheduler_.random().below(most)));
}

Result<store::Reading> FaultStore::read(const std::vector<std::string>& keys) {
  if (chance(plan_.unavailable_read, "unavailable_read")) return unavailable("the store is away");
  return truth_.read(keys);
}

Result<store::Reading> FaultStore::scan(const ScanRange& range) {
  if (chance(plan_.unavailable_read, "unavailable_read")) return unavailable("the store is away");
  return truth_.scan(range);
}

Result<store::CommitAnswer> FaultStore::apply(std::vector<store::Step> steps, store::Sync sync) {
  for (store::Step& step : steps) {
    if (sabotage_ == Sabotage::IgnoreTimers) step.demand.reset();
    if (sabotage_ == Sabotage::IgnoreVersions) step.expect = store::Expect::Any;
  }
  auto answer = truth_.commit(steps, sync);
  const bool applied = answer && std::holds_alternative<store::Committed>(*answer);
  scheduler_.note(applied ? "applied" : "conflict");
  if (applied && look_) look_();
  return answer;
}

Result<store::CommitAnswer> FaultStore::commit(const std::vector<store::Step>& steps,
                                               store::Sync sync) {
  if (chance(plan_.slow, "slow")) pass_time();
  if (chance(plan_.unavailable, "unavailable")) return unavailable("the store is away");
  if (chance(plan_.lose_request, "lose_request")) return unknown();
  if (chance(plan_.apply_late, "apply_late")) {
    const auto most = static_cast<std::uint64_t>(Nanos(plan_.latest).count());
    late_.push_back({clock_.mono() + Nanos(scheduler_.random().below(most)), steps, sync});
    scheduler_.wake(*this);
    return unknown();
  }
  auto answer = apply(steps, sync);
  if (chance(plan_.slow_reply, "slow_reply")) pass_time();
  if (chance(plan_.lose_reply, "lose_reply")) return unknown();
  return answer;
}

std::optional<MonoTime> FaultStore::next_late() const {
  std::optional<MonoTime> next;
  for (const Late& late : late_) next = std::min(next.value_or(late.due), late.due);
  return next;
}

std::optional<MonoTime> FaultStore::step(MonoTime now) {
  for (std::size_t i = 0; i < late_.size();) {
    if (late_[i].due > now) {
      ++i;
      continue;
    }
    Late due = std::move(late_[i]);
    late_.erase(late_.begin() + static_cast<std::ptrdiff_t>(i));
    scheduler_.note("a lost commit arrives");
    const auto answer = apply(std::move(due.steps), due.sync);
    const bool applied = answer && std::holds_alternative<store::Committed>(*answer);
    ++faults_[applied ? "late_applied" : "late_dead"];
  }
  return next_late();
}

}  // namespace stint::test
