// A store's word for the tests of guards, without a store: which token is the newest, and which
// targets are remembered. Within one process; the law itself is core's. Thread safety: the public
// fields are set before the threads start, but for issue(), which any thread may call.
#pragma once

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "api/fences.h"
#include "guard/guard.h"

namespace stint::test {

// The same in every process of a test.
inline Generation generation_number(int number) {
  std::string hex(32, '0');
  hex[0] = static_cast<char>('a' + number);
  hex[31] = '1';
  return Generation::parse(hex).value();
}

class IssuingFences final : public api::Fences {
 public:
  Generation generation = generation_number(0);
  std::vector<Generation> ancestors;
  void issue(std::uint64_t token) { newest_ = token; }
  bool granted = true;
  bool live = true;
  bool reachable = true;
  std::atomic<int> asked = 0;
  std::vector<std::string> targets;

  Result<api::TokenWord> word(const ResourceName&) override {
    ++asked;
    if (!reachable) return unavailable("the store is not there");
    api::TokenWord out;
    out.issued = {generation, ancestors, Token(newest_), granted};
    out.owner = Owner::parse("newest-owner").value();
    out.live = live;
    return out;
  }
  Result<std::vector<std::string>> sealed(const ResourceName&) override {
    const std::lock_guard lock(mutex_);
    return targets;
  }
  Result<core::Verdict> remember(const core::Offer& offer,
                                 const std::vector<std::string>& more) override {
    if (offer.token != Token(newest_)) return core::Verdict::Stale;
    const std::lock_guard lock(mutex_);
    for (const std::string& one : more) {
      if (std::ranges::find(targets, one) == targets.end()) targets.push_back(one);
    }
    return core::Verdict::Admitted;
  }
  Status forget(const ResourceName&, const std::string& target) override {
    const std::lock_guard lock(mutex_);
    std::erase(targets, target);
    return {};
  }
  Result<api::FenceAnswer> admit(const std::string&, const core::Offer&) override { return none(); }
  Result<api::FenceAnswer> seal(const std::string&, const core::Offer&) override { return none(); }
  Result<std::optional<core::Fence>> fence(const std::string&) override { return none(); }
  Result<api::FenceAnswer> begin(const api::Act&, const core::Offer&) override { return none(); }
  Result<api::FenceAnswer> finish(const api::Act&, const core::Offer&) override { return none(); }
  Result<std::optional<api::Act>> act(const std::string&, const std::string&) override {
    return none();
  }

 private:
  std::atomic<std::uint64_t> newest_ = 0;
  std::mutex mutex_;
  static Error none() { return {Code::Failed, "these guards keep no fence in the store"}; }
};

inline guard::Pass pass_with(std::uint64_t token, int generation = 0) {
  return {.resource = ResourceName::parse("r").value(),
          .token = Token(token),
          .generation = generation_number(generation),
          .claim = {},
          .owner = Owner::parse("somebody").value()};
}

}  // namespace stint::test
