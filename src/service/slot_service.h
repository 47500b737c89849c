// api::Slots on a store: reads a job's record, asks core/slots.h, and commits what it says on the
// version that it read. A conflict means that another scheduler got on: read and decide again. G9
#pragma once

#include <functional>

#include "api/once.h"
#include "api/slots.h"
#include "service/ledger.h"
#include "store/seam.h"

namespace stint::service {

class SlotService final : public api::Slots {
 public:
  using FindZone = std::function<Result<core::Zone>(const std::string&)>;
  // All must outlive the service. Without `find_zone` UTC and the zones of the rules are known.
  // `once`: it is for one request, whose answer is kept in the commit that does what it tells of;
  // but not decide()'s, which is a commit a job.
  SlotService(store::Store& store, Ledger& ledger, const Clock& clock, FindZone find_zone = {},
              std::optional<api::Once> once = {})
      : store_(store),
        ledger_(ledger),
        clock_(clock),
        find_zone_(std::move(find_zone)),
        once_(std::move(once)) {}

  Result<WallTime> now() override;
  bool own_clock() const override;
  std::vector<Result<api::Decided>> decide(const std::vector<api::DecideAsk>& asks,
                                           const std::string& scheduler) override;
  Status keep(const std::string& job) override;
  Result<std::vector<std::string>> open_jobs() override;
  Result<std::vector<api::NamedJob>> jobs() override;
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

 private:
  struct LeaseLook;
  struct JobLook;
  struct Plan;
  struct Batch;

  WallTime now_of(const store::Reading& reading) const;
  // Every job's record, in the order of their names.
  Status each_job(
      const std::function<Status(const std::string& name, const store::Entry& entry)>& look);
  Result<LeaseLook> look_lease(const std::string& resource);
  static Result<LeaseLook> lease_in(const std::vector<store::Entry>& entries, std::size_t at);
  Result<std::vector<Result<JobLook>>> look_jobs(const std::vector<std::string>& names);
  Result<JobLook> look_job(const std::string& name);
  static core::JobSight sight_of(const JobLook& look, const std::string& scheduler);
  // The record's, where the rule has another one.
  std::optional<core::Cadence> cadence_before(const JobLook& look, const core::JobRule& rule) const;
  static Plan plan_of(const JobLook& look, const core::JobRule& rule,
                      const core::JobDecision& decision);
  void decide_batch(Batch& batch, const std::string& scheduler);
  void commit_plans(Batch& batch, const std::vector<std::size_t>& which);

  using Move = std::function<core::SlotStep(const core::Job&, const core::SlotGrip&, WallTime)>;
  using Write = std::string (*)(const core::SlotStep&);  // the answer's body
  struct Moving {
    bool needs_live = true;
    store::Sync sync = store::Sync::Relaxed;
    Write write = nullptr;  // null: {"done":true}
  };
  Result<core::SlotStep> move(const api::SlotProof& proof, const Moving& how, const Move& step);
  Status forget_oldest(const std::string& job, core::Job& after, std::vector<store::Step>& steps);
  Status forget_rows(const std::string& job, core::Job& after, std::vector<store::Step>& steps);
  Status forget_ranges(const std::string& job, core::Job& after, std::vector<store::Step>& steps);
  Result<api::StepAnswer> simple(const api::SlotProof& proof, const Moving& how, const Move& step);
  // What is to be done, and what besides the record must stand as it was seen.
  using Order = std::function<Result<std::optional<core::JobDecision>>(
      const JobLook& look, std::vector<store::Step>& checks)>;
  // `write`: the answer's body, of the job as it is afterwards.
  Result<core::Job> order(const core::JobRule& rule, const Order& decide, const api::Event& event,
                          const std::function<std::string(const core::Job&)>& write);
  // How the slot ended, alone or in a range; else its row is checked to be absent.
  Result<std::optional<core::EndedSlot>> ended_row(const std::string& job, WallTime at,
                                                   std::vector<store::Step>& checks);
  Result<std::optional<core::EndedSlot>> dropped_at(const core::JobRule& rule,
                                                    const core::Slot& slot);
  using OnceMove = std::function<std::optional<api::OnceRecord>(const api::OnceRecord&, WallTime)>;
  Result<api::StepAnswer> once_move(const std::string& key, const api::Grip& grip,
                                    const OnceMove& next);

  store::Store& store_;
  Ledger& ledger_;
  const Clock& clock_;
  const FindZone find_zone_;
  const std::optional<api::Once> once_;
};

}  // namespace stint::service
