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

}  // namespace stint::store
