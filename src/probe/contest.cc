#include "probe/contest.h"

#include "base/text.h"

namespace stint::probe {
namespace {

Result<std::uint64_t> number_of(const store::Entry& entry) {
  if (!entry.present()) return std::uint64_t{0};
  const auto number = parse_digits(entry.value);
  if (!number)
    return Error{Code::Failed, cat("the record ", quoted(entry.key), " was changed by others")};
  return *number;
}

}  // namespace

Result<std::uint64_t> read_number(store::Store& store, const std::string& key) {
  auto reading = store.read({key});
  if (!reading) return reading.error();
  return number_of(reading->entries.front());
}

Result<Tally> contend(store::Store& store, const Contest& contest,
                      const std::function<void(Nanos)>& pause) {
  // Each conflict is another's success: so many tries only a store needs that lies about conflicts.
  const int most_tries = contest.contenders * contest.increments * 20;
  Tally tally;
  const auto enough = static_cast<std::uint64_t>(contest.increments);
  for (int tries = 0; tally.acknowledged + tally.unknown < enough; ++tries) {
    if (tries > most_tries) return Error{Code::Failed, "conflicts without end"};
    auto reading = store.read({contest.key});
    if (!reading) return reading.error();
    const store::Entry& entry = reading->entries.front();
    const auto number = number_of(entry);
    if (!number) return number.error();
    pause(std::chrono::microseconds(500));
    store::Step step;
    step.kind = store::Step::Kind::Set;
    step.key = contest.key;
    step.expect = entry.present() ? store::Expect::Seen : store::Expect::Absent;
    step.version = entry.version;
    step.value = std::to_string(*number + 1);
    step.timer = store::Step::TimerOp::Start;  // tells a later examination that it was left behind
    step.ttl = Millis(3'600'000);
    auto answer = store.commit({step}, store::Sync::Relaxed);
    if (!answer && answer.error().code == Code::UnknownOutcome) {
      ++tally.unknown;
    } else if (!answer) {
      return answer.error();
    } else if (std::holds_alternative<store::Committed>(*answer)) {
      ++tally.acknowledged;
    }
  }
  return tally;
}

}  // namespace stint::probe
