// What the seam's conformance tests share: one store of the case at hand, and short ways to write
// steps.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <variant>
#include <vector>

#include "store/seam.h"
#include "tests/conformance/stores.h"

namespace stint::testing {

using store::Expect;
using store::Step;

inline Step set(std::string key, std::string value) {
  Step step;
  step.kind = Step::Kind::Set;
  step.key = std::move(key);
  step.value = std::move(value);
  return step;
}
inline Step step_of(Step::Kind kind, std::string key) {
  Step step;
  step.kind = kind;
  step.key = std::move(key);
  return step;
}
inline Step check(std::string key) { return step_of(Step::Kind::Check, std::move(key)); }
inline Step touch(std::string key) { return step_of(Step::Kind::Touch, std::move(key)); }
inline Step remove(std::string key) { return step_of(Step::Kind::Remove, std::move(key)); }
inline Step append(std::string prefix, std::string value) {
  Step step = step_of(Step::Kind::Append, std::move(prefix));
  step.value = std::move(value);
  return step;
}
inline Step absent(Step step) {
  step.expect = Expect::Absent;
  return step;
}
inline Step seen(Step step, store::Version version) {
  step.expect = Expect::Seen;
  step.version = version;
  return step;
}
inline Step demanding(Step step, TimerState state) {
  step.demand = state;
  return step;
}
inline Step timed(Step step, Step::TimerOp op, Millis ttl = Millis(0)) {
  step.timer = op;
  step.ttl = ttl;
  return step;
}

inline store::Store::ScanRange under(std::string prefix, std::string after = "",
                                     std::size_t limit = 100, bool backwards = false) {
  return {.prefix = std::move(prefix),
          .after = std::move(after),
          .limit = limit,
          .backwards = backwards};
}

constexpr Millis kLong{600'000};

class SeamTest : public ::testing::TestWithParam<StoreCase> {
 protected:
  // Empty: a conflict.
  std::optional<store::Committed> commit(const std::vector<Step>& steps,
                                         store::Sync sync = store::Sync::Relaxed) {
    auto answer = store_->commit(steps, sync);
    EXPECT_TRUE(answer.has_value()) << (answer ? "" : answer.error().message);
    if (!answer || std::holds_alternative<store::Conflict>(*answer)) return std::nullopt;
    return std::get<store::Committed>(*answer);
  }
  // The step that did not hold; -1 if the commit went through.
  int conflict(const std::vector<Step>& steps) {
    auto answer = store_->commit(steps, store::Sync::Relaxed);
    EXPECT_TRUE(answer.has_value()) << (answer ? "" : answer.error().message);
    if (!answer || std::holds_alternative<store::Committed>(*answer)) return -1;
    return static_cast<int>(std::get<store::Conflict>(*answer).step);
  }
  store::Entry get(const std::string& key) { return store_->read({key}).value().entries.front(); }
  std::vector<store::Entry> scan(const store::Store::ScanRange& range) {
    return store_->scan(range).value().entries;
  }
  std::vector<std::string> keys(const store::Store::ScanRange& range) {
    std::vector<std::string> out;
    for (const store::Entry& entry : scan(range)) out.push_back(entry.key);
    return out;
  }
  bool wait_until_fired(const std::string& key) {
    return site_->eventually([&] { return get(key).timer.state == TimerState::Fired; });
  }

  std::unique_ptr<Site> site_ = GetParam().make();
  std::unique_ptr<store::Store> store_ = site_->open();
};

#define STINT_FOR_EVERY_STORE(Suite)                                    \
  INSTANTIATE_TEST_SUITE_P(Store, Suite, ::testing::ValuesIn(stores()), \
                           [](const auto& each) { return each.param.name; })

}  // namespace stint::testing
