// The desk of the directory queue's tests: a queue in a folder of its own, and what it told.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>

#include "base/mutex.h"
#include "base/text.h"
#include "os/clock.h"
#include "os/random.h"
#include "queue/dir_queue.h"
#include "tests/support/process.h"
#include "tests/support/queue_asks.h"

namespace stint::test {

inline constexpr Millis kHour{3'600'000};
inline constexpr Millis kBrief{300};

class KeptEvents final : public api::Events {
 public:
  Result<std::vector<api::Event>> list(const api::EventQuery& /*query*/) override { return all; }
  Status record(const api::Event& event) override {
    const MutexLock lock(mutex_);  // many threads complete at once
    all.push_back(event);
    return {};
  }
  Status record_refusal(const api::Event& event, const std::string& /*target*/) override {
    return record(event);
  }
  Result<std::unique_ptr<Watch>> watch() override { return unavailable("not here"); }

  std::vector<api::Event> all;

 private:
  Mutex mutex_;
};

class DirQueueTest : public ::testing::Test {
 protected:
  core::QueueName name(std::string_view text = "jobs") {
    return core::QueueName::parse(text).value();
  }
  core::ItemId put(const std::string& payload, core::ItemLimits limits = {}) {
    auto put = queue_.put(put_request(name(), payload, limits));
    EXPECT_TRUE(put.has_value()) << (put ? "" : put.error().message);
    return put.value().id;
  }
  std::optional<api::ClaimedItem> claim(std::string_view who = "ann", Millis ttl = kHour,
                                        std::string_view from = "jobs") {
    auto answer = queue_.claim({.queue = name(from),
                                .owner = Owner::parse(who).value(),
                                .claim = Claim::make(random_),
                                .ttl = ttl});
    EXPECT_TRUE(answer.has_value()) << (answer ? "" : answer.error().message);
    if (!answer || std::holds_alternative<api::EmptyQueue>(*answer)) return std::nullopt;
    return std::get<api::ClaimedItem>(*answer);
  }
  std::optional<api::ClaimedItem> claim_when_free(std::string_view who) {
    std::optional<api::ClaimedItem> got;
    EXPECT_TRUE(wait_until([&] { return (got = claim(who)).has_value(); }, Millis(30'000)));
    return got;
  }
  static api::ItemRef ref(const api::ClaimedItem& claimed) {
    return {claimed.item.id, claimed.item.item.epoch};
  }
  static core::ItemCause lost(const Result<api::ItemAnswer>& answer) {
    EXPECT_TRUE(answer.has_value()) << (answer ? "" : answer.error().message);
    if (!answer) return core::ItemCause::NotYet;
    const auto* no = std::get_if<api::ItemLost>(&*answer);
    return no == nullptr ? core::ItemCause::None : no->cause;
  }
  static bool done(const Result<api::ItemAnswer>& answer) {
    return lost(answer) == core::ItemCause::None;
  }
  static api::Completion completion(const api::ItemRef& ref, std::string result = "ok") {
    return {.ref = ref, .result = std::move(result), .then = {}};
  }
  core::ItemState state(const core::ItemId& id) {
    return queue_.show(id).value().value().item.state;
  }
  std::string folder(std::string_view text = "jobs") { return cat(dir_.path(), "/queues/", text); }
  std::size_t files(const std::string& path) {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator(path)) ++count;
    return count;
  }

  static Code lost_error(const Result<api::ItemAnswer>& answer) {
    return answer.has_value() ? Code::Failed : answer.error().code;
  }
  // A completion whose follow-ups have not been moved on: their queue is away (as `away`).
  template <class Complete>
  void leave_behind(Complete complete) {
    const std::string next = folder("next");
    // The limits of the follow-ups are asked for first, and their folder is opened after the
    // rename.
    std::filesystem::create_directory(folder("away"));
    std::filesystem::rename(next + "/queue", folder("away") + "/queue");
    ASSERT_TRUE(complete());
    std::filesystem::rename(folder("away") + "/queue", next + "/queue");
    std::filesystem::remove(folder("away"));
    std::filesystem::rename(next, folder("away"));
  }
  bool parks(const core::ItemId& id) {
    return wait_until([&] {
      EXPECT_TRUE(queue_.tend(name()));
      return state(id) == core::ItemState::Parked;
    });
  }
  // The one claim that stands.
  std::string claimed_file() {
    for (const auto& each : std::filesystem::recursive_directory_iterator(folder() + "/claimed")) {
      if (each.is_regular_file()) return each.path().string();
    }
    return {};
  }

  TempDir dir_;
  os::SystemClock clock_;
  os::SystemRandom random_;
  KeptEvents events_;
  queue::DirQueue queue_{dir_.path() + "/queues", &events_, clock_, random_};
};

}  // namespace stint::test
