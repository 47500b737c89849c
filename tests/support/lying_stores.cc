#include "tests/support/lying_stores.h"

namespace stint::test {

Result<store::CommitAnswer> LastWriterWins::commit(const std::vector<store::Step>& steps,
                                                   store::Sync sync) {
  std::vector<store::Step> careless = steps;
  for (store::Step& step : careless) {
    step.expect = store::Expect::Any;
    step.demand.reset();
  }
  return SharedStore::commit(careless, sync);
}

Result<store::Reading> EventuallyConsistent::read(const std::vector<std::string>& keys) {
  auto truth = SharedStore::read(keys);
  if (!truth) return truth;
  const bool refresh = ++reads_ % 3 == 0;
  for (store::Entry& entry : truth->entries) {
    const auto known = copy_.find(entry.key);
    if (refresh || known == copy_.end()) {
      copy_.insert_or_assign(entry.key, entry);
    } else {
      entry = known->second;
    }
  }
  return truth;
}

}  // namespace stint::test
