#include "app/unserved.h"

#include "base/text.h"

namespace stint::app {
namespace {

Error schedules() { return unserved("a schedule"); }

}  // namespace

Error unserved(std::string_view what) {
  return invalid(cat(
      what,
      " needs the store itself: a stint server serves leases, fences and events. Give the URL of "
      "the server's own store with --store"));
}

Result<WallTime> UnservedSlots::now() { return schedules(); }
std::vector<Result<api::Decided>> UnservedSlots::decide(const std::vector<api::DecideAsk>& asks,
                                                        const std::string& /*scheduler*/) {
  return std::vector<Result<api::Decided>>(asks.size(), Result<api::Decided>(schedules()));
}
Status UnservedSlots::keep(const std::string& /*job*/) { return schedules(); }
Result<std::vector<std::string>> UnservedSlots::open_jobs() { return schedules(); }
Result<api::StepAnswer> UnservedSlots::claim(const api::SlotProof& /*proof*/) {
  return schedules();
}
Result<api::StepAnswer> UnservedSlots::start(const api::SlotProof& /*proof*/) {
  return schedules();
}
Result<api::StepAnswer> UnservedSlots::running(const api::SlotProof& /*proof*/) {
  return schedules();
}
Result<api::StepAnswer> UnservedSlots::hand_back(const api::SlotProof& /*proof*/) {
  return schedules();
}
Result<api::EndAnswer> UnservedSlots::end(const api::SlotProof& /*proof*/,
                                          const core::SlotEnd& /*end*/,
                                          const core::JobRule& /*rule*/) {
  return schedules();
}
Result<api::EndAnswer> UnservedSlots::skip(const api::SlotSkip& /*skip*/) { return schedules(); }
Result<api::SlotAdded> UnservedSlots::add(const core::JobRule& /*rule*/,
                                          std::optional<core::Slot> /*slot*/,
                                          const std::string& /*scheduler*/) {
  return schedules();
}
Status UnservedSlots::pause(const core::JobRule& /*rule*/, const std::string& /*by*/) {
  return schedules();
}
Status UnservedSlots::resume(const core::JobRule& /*rule*/, const std::string& /*by*/) {
  return schedules();
}
Result<api::JobHistory> UnservedSlots::history(const std::string& /*job*/, std::size_t /*limit*/) {
  return schedules();
}
Result<std::unique_ptr<Watch>> UnservedSlots::watch() { return schedules(); }
Result<api::OnceRecord> UnservedSlots::once(const std::string& /*key*/) { return schedules(); }
Result<api::StepAnswer> UnservedSlots::once_start(const std::string& /*key*/,
                                                  const api::Grip& /*grip*/,
                                                  const Owner& /*owner*/) {
  return schedules();
}
Result<api::StepAnswer> UnservedSlots::once_end(const std::string& /*key*/,
                                                const api::Grip& /*grip*/, int /*exit_code*/) {
  return schedules();
}

}  // namespace stint::app
