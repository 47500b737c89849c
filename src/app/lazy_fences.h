// api::Fences of a store that is opened when it is asked for the first time. A write whose fence
// stands already needs no store, and so opens none.
#pragma once

#include <functional>
#include <utility>

#include "api/fences.h"

namespace stint::app {

class LazyFences final : public api::Fences {
 public:
  using Open = std::function<Result<api::Fences*>()>;
  explicit LazyFences(Open open) : open_(std::move(open)) {}

  Result<api::TokenWord> word(const ResourceName& resource) override;
  Result<std::vector<std::string>> sealed(const ResourceName& resource) override;
  Result<core::Verdict> remember(const core::Offer& offer,
                                 const std::vector<std::string>& targets) override;
  Status forget(const ResourceName& resource, const std::string& target,
                const api::ForgetWord& word) override;
  Result<api::FenceAnswer> admit(const std::string& target, const core::Offer& offer) override;
  Result<api::FenceAnswer> seal(const std::string& target, const core::Offer& offer) override;
  Result<std::optional<core::Fence>> fence(const std::string& target) override;
  Result<api::FenceAnswer> begin(const api::Act& act, const core::Offer& offer) override;
  Result<api::FenceAnswer> finish(const api::Act& act, const core::Offer& offer) override;
  Result<std::optional<api::Act>> act(const std::string& name, const std::string& key) override;

 private:
  Open open_;
};

}  // namespace stint::app
