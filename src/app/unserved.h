// What a stint server does not serve: schedules and queues. Every call says so and changes nothing.
#pragma once

#include <string_view>

#include "api/slots.h"
#include "base/error.h"

namespace stint::app {

Error unserved(std::string_view what);

class UnservedSlots : public api::Slots {
 public:
  Result<WallTime> now() override;
  bool own_clock() const override { return false; }
  std::vector<Result<api::Decided>> decide(const std::vector<api::DecideAsk>& asks,
                                           const std::string& scheduler) override;
  Status keep(const std::string& job) override;
  Result<std::vector<std::string>> open_jobs() override;
  Result<api::StepAnswer> claim(const api::SlotProof& proof) override;
  Result<api::StepAnswer> start(const api::SlotProof& proof) override;
  Result<api::StepAnswer> running(const api::SlotProof& proof) override;
  Result<api::StepAnswer> hand_back(const api::SlotProof& proof) override;
  Result<api::EndAnswer> end(const api::SlotProof& proof, const core::SlotEnd& end,
                             const core::JobRule& rule) override;
  Result<api::EndAnswer> skip(const api::SlotSkip& skip) override;
  Result<api::SlotAdded> add(const core::JobRule& rule, std::optional<core::Slot> slot,
                             const std::string& scheduler) override;
  Status pause(const core::JobRule& rule, const std::string& by) override;
  Status resume(const core::JobRule& rule, const std::string& by) override;
  Result<api::JobHistory> history(const std::string& job, std::size_t limit) override;
  Result<std::unique_ptr<Watch>> watch() override;
  Result<api::OnceRecord> once(const std::string& key) override;
  Result<api::StepAnswer> once_start(const std::string& key, const api::Grip& grip,
                                     const Owner& owner) override;
  Result<api::StepAnswer> once_end(const std::string& key, const api::Grip& grip,
                                   int exit_code) override;
};

}  // namespace stint::app
