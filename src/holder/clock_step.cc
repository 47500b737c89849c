#include "holder/clock_step.h"

#include "base/text.h"

namespace stint::holder {

std::string clock_step_line(Millis by) {
  if (by.count() < 0) {
    return cat("the store's clock was set back by ", rough_duration(-by),
               ": leases there last longer than they should");
  }
  return cat("the store's clock is ahead by another ", rough_duration(by),
             ": it was set, or this machine was paused; leases end early");
}

api::Event clock_step_event(const StepSeen& seen) {
  api::Event event;
  event.at = seen.at;
  event.kind = "store_clock_stepped";
  event.resource = seen.resource.text();
  event.token = seen.token.number();
  event.owner = seen.owner.text();
  event.details.emplace_back("by_ms", seen.by.count());
  return event;
}

}  // namespace stint::holder
