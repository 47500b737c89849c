// api::Fences on a store: one fresh read, core/fence.h's answer, and a commit that expects what was
// read. A conflict means that somebody else got on: read and decide again.                  G5
#pragma once

#include "api/fences.h"
#include "api/once.h"
#include "service/fence_records.h"
#include "store/seam.h"

namespace stint::service {

class FenceService final : public api::Fences {
 public:
  // Both must outlive the service. `once`: it is for one request, whose answer is kept in the
  // commit that does what it tells of.
  FenceService(store::Store& store, const Clock& clock, std::optional<api::Once> once = {})
      : store_(store), clock_(clock), once_(std::move(once)) {}

  Result<api::TokenWord> word(const ResourceName& resource) override;
  Result<std::vector<std::string>> sealed(const ResourceName& resource) override;
  Result<core::Verdict> remember(const core::Offer& offer,
                                 const std::vector<std::string>& targets) override;
  Status forget(const ResourceName& resource, const std::string& target,
                const api::ForgetWord& word) override;
  Result<api::FenceAnswer> admit(const std::string& target, const core::Offer& offer) override;
  Result<api::FenceAnswer> seal(const std::string& target, const core::Offer& offer) override;
  Result<std::optional<core::Fence>> fence(const std::string& target) override;
  Result<std::vector<std::string>> names() override;
  Result<api::FenceAnswer> begin(const api::Act& act, const core::Offer& offer) override;
  Result<api::FenceAnswer> finish(const api::Act& act, const core::Offer& offer) override;
  Result<std::optional<api::Act>> act(const std::string& name, const std::string& key) override;

 private:
  struct Asked;
  struct View;
  struct Plan;
  using Decide = Result<Plan> (*)(const View&, const Asked&);
  using Write = std::string (*)(const View&);  // the answer's body

  Result<View> look(const Asked& asked);
  // Reads, decides, commits; again on a conflict, and on an unknown outcome a few times: only a
  // commit of our own, or the effect, settles it.
  Result<View> settle(const Asked& asked, Decide decide, Write write);
  static std::vector<store::Step> unchanged(const View& view, const Asked& asked);
  static Result<Plan> plan_raise(const View& view, const Asked& asked);
  static Result<Plan> plan_begin(const View& view, const Asked& asked);
  static Result<Plan> plan_finish(const View& view, const Asked& asked);
  static void plan_lists(Plan& plan, const View& view, const Asked& asked, const Remembered& after);
  static Result<Plan> plan_remember(const View& view, const Asked& asked);
  static Result<Plan> plan_forget(const View& view, const Asked& asked);
  static api::FenceAnswer answer_of(const View& view);
  Result<api::FenceAnswer> answer(const Asked& asked, Decide decide);

  store::Store& store_;
  const Clock& clock_;
  const std::optional<api::Once> once_;
};

}  // namespace stint::service
