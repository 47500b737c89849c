#include "store/steps.h"

#include "base/check.h"
#include "base/text.h"

namespace stint::store {

Status check_sizes(const std::vector<Step>& steps) {
  CHECK(steps.size() <= Store::kMaxSteps, "too many steps in one commit");
  for (const Step& step : steps) {
    if (step.key.size() > Store::kMaxKeyBytes || step.value.size() > Store::kMaxValueBytes) {
      return invalid(cat("the record ", quoted(step.key), " is too large"));
    }
  }
  return {};
}

bool finds_expected(const Step& step, Version version) {
  switch (step.expect) {
    case Expect::Any: break;
    case Expect::Absent:
      if (version != 0) return false;
      break;
    case Expect::Seen:
      if (version != step.version) return false;
      break;
  }
  return step.kind != Step::Kind::Touch || version != 0;
}

}  // namespace stint::store
