#include "tests/support/fault_store.h"

#include <algorithm>

#include "base/text.h"

namespace stint::test {
namespace {

constexpr std::uint64_t kVersionsAhead = 1ULL << 32U;
constexpr const char* kSimTail = "store/tail";

Error unknown() { return {Code::UnknownOutcome, "the answer was lost"}; }
Error away() { return unavailable("the store is away"); }

}  // namespace

FaultStore::FaultStore(Scheduler& scheduler, const SimClock& clock, const FaultPlan& plan,
                       Sabotage sabotage)
    : scheduler_(scheduler),
      clock_(clock),
      plan_(plan),
      sabotage_(sabotage),
      truth_(clock),
      capabilities_(truth_.capabilities()) {
  if (plan.loses_tails) capabilities_.tail_record = kSimTail;
}

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

bool FaultStore::travel() {
  if (!faulty_) return scheduler_.alive();
  const auto most = static_cast<std::uint64_t>(plan_.usual.count());
  scheduler_.interleave(Nanos(1 + scheduler_.random().below(most)));
  return scheduler_.alive() && !(cut_off_ && cut_off_());
}

Result<store::Reading> FaultStore::read(const std::vector<std::string>& keys) {
  if (!travel() || chance(plan_.unavailable_read, "unavailable_read")) return away();
  auto reading = truth_.read(keys);
  if (!travel()) return away();
  return reading;
}

Result<store::Reading> FaultStore::scan(const ScanRange& range) {
  if (!travel() || chance(plan_.unavailable_read, "unavailable_read")) return away();
  auto reading = truth_.scan(range);
  if (!travel()) return away();
  return reading;
}

Result<std::uint64_t> FaultStore::revision() {
  if (!travel()) return away();
  const auto version = truth_.revision();
  return *version - jumped_;
}

void FaultStore::fail_over() {
  scheduler_.note("fail-over: the tail is lost");
  truth_.restore(*image_, kVersionsAhead);
  jumped_ += kVersionsAhead;
  late_.clear();  // their connections are gone
  store::Step tail;
  tail.kind = store::Step::Kind::Set;
  tail.key = kSimTail;
  tail.value = std::to_string(to_ms(clock_.wall()));
  static_cast<void>(truth_.commit({tail}, store::Sync::Durable));
}

void FaultStore::restore() {
  scheduler_.note("a backup is restored");
  truth_.restore(*image_, 0);
  late_.clear();
}

Result<store::CommitAnswer> FaultStore::apply(std::vector<store::Step> steps, store::Sync sync) {
  for (store::Step& step : steps) {
    if (sabotage_ == Sabotage::IgnoreTimers) step.demand.reset();
    if (sabotage_ == Sabotage::IgnoreVersions) step.expect = store::Expect::Any;
  }
  auto answer = truth_.commit(steps, sync);
  auto* done = answer ? std::get_if<store::Committed>(&*answer) : nullptr;
  scheduler_.note(done != nullptr ? "applied" : "conflict");
  if (done != nullptr) done->revision -= jumped_;
  if (done != nullptr && look_) look_(steps);
  return answer;
}

Result<store::CommitAnswer> FaultStore::commit(const std::vector<store::Step>& steps,
                                               store::Sync sync) {
  if (!travel()) return away();
  if (chance(plan_.slow, "slow")) pass_time();
  if (!scheduler_.alive() || chance(plan_.unavailable, "unavailable")) return away();
  if (chance(plan_.lose_request, "lose_request")) return unknown();
  const auto arrives_later = [&] {
    const auto most = static_cast<std::uint64_t>(Nanos(plan_.latest).count());
    late_.push_back({clock_.mono() + Nanos(scheduler_.random().below(most)), steps, sync});
    scheduler_.wake(*this);
  };
  if (chance(plan_.apply_late, "apply_late")) {
    arrives_later();
    return unknown();
  }
  if (chance(plan_.duplicate, "duplicate")) arrives_later();
  auto answer = apply(steps, sync);
  if (chance(plan_.slow_reply, "slow_reply")) pass_time();
  if (!travel() || chance(plan_.lose_reply, "lose_reply")) return unknown();
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
    late_.erase(late_.begin() + static_cast<std::ptrdiff_t>(i));  // before others can run
    scheduler_.note("a lost commit arrives");
    const auto answer = apply(std::move(due.steps), due.sync);
    const bool applied = answer && std::holds_alternative<store::Committed>(*answer);
    ++faults_[applied ? "late_applied" : "late_dead"];
  }
  return next_late();
}

}  // namespace stint::test
