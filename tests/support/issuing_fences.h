// A store's word for the tests of guards, without a store: which token is the newest, and which
// targets are remembered. Within one process; the law itself is core's. Thread safety: the public
// fields are set before the threads start, but for issue(), which any thread may call.
#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
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
  ClaimHash claim;  // of the newest token's holder
  bool reachable = true;
  std::atomic<int> asked = 0;
  std::function<void()> meanwhile;   // what others do when the word is asked for; once
  std::vector<std::string> targets;  // sealed, or about to be
  std::vector<std::string> sealing;  // those of them that are only about to be

  Result<api::TokenWord> word(const ResourceName&) override {
    ++asked;
    if (meanwhile) std::exchange(meanwhile, nullptr)();
    if (!reachable) return unavailable("the store is not there");
    api::TokenWord out;
    out.issued = {generation, ancestors, Token(newest_), granted};
    out.owner = Owner::parse("newest-owner").value();
    out.live = live;
    out.claim = claim;
    const std::lock_guard lock(mutex_);
    out.sealed = targets;
    out.sealing = sealing;
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
      const bool known = std::ranges::find(targets, one) != targets.end();
      const bool ahead = std::ranges::find(sealing, one) != sealing.end();
      switch (offer.sealing) {
        case core::Sealing::Ahead:
          if (!known) sealing.push_back(one);
          break;
        case core::Sealing::MadeAnew:
        case core::Sealing::Stands: std::erase(sealing, one); break;
        case core::Sealing::Refused:
          std::erase(sealing, one);
          if (ahead) std::erase(targets, one);
          continue;
      }
      if (!known) targets.push_back(one);
    }
    return core::Verdict::Admitted;
  }
  Status forget(const ResourceName&, const std::string& target, const api::ForgetWord&) override {
    const std::lock_guard lock(mutex_);
    std::erase(targets, target);
    std::erase(sealing, target);
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
