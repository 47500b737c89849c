#include "app/lazy_fences.h"

namespace stint::app {

Result<api::TokenWord> LazyFences::word(const ResourceName& resource) {
  auto fences = open_();
  if (!fences) return fences.error();
  return (*fences)->word(resource);
}

Result<std::vector<std::string>> LazyFences::sealed(const ResourceName& resource) {
  auto fences = open_();
  if (!fences) return fences.error();
  return (*fences)->sealed(resource);
}

Result<core::Verdict> LazyFences::remember(const core::Offer& offer,
                                           const std::vector<std::string>& targets) {
  auto fences = open_();
  if (!fences) return fences.error();
  return (*fences)->remember(offer, targets);
}

Status LazyFences::forget(const ResourceName& resource, const std::string& target,
                          const api::ForgetWord& word) {
  auto fences = open_();
  if (!fences) return fences.error();
  return (*fences)->forget(resource, target, word);
}

Result<api::FenceAnswer> LazyFences::admit(const std::string& target, const core::Offer& offer) {
  auto fences = open_();
  if (!fences) return fences.error();
  return (*fences)->admit(target, offer);
}

Result<api::FenceAnswer> LazyFences::seal(const std::string& target, const core::Offer& offer) {
  auto fences = open_();
  if (!fences) return fences.error();
  return (*fences)->seal(target, offer);
}

Result<std::optional<core::Fence>> LazyFences::fence(const std::string& target) {
  auto fences = open_();
  if (!fences) return fences.error();
  return (*fences)->fence(target);
}

Result<api::FenceAnswer> LazyFences::begin(const api::Act& act, const core::Offer& offer) {
  auto fences = open_();
  if (!fences) return fences.error();
  return (*fences)->begin(act, offer);
}

Result<api::FenceAnswer> LazyFences::finish(const api::Act& act, const core::Offer& offer) {
  auto fences = open_();
  if (!fences) return fences.error();
  return (*fences)->finish(act, offer);
}

Result<std::optional<api::Act>> LazyFences::act(const std::string& name, const std::string& key) {
  auto fences = open_();
  if (!fences) return fences.error();
  return (*fences)->act(name, key);
}

}  // namespace stint::app
