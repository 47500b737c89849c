// What `stint torture` is made of, in one process: clean where the store and the targets keep their
// word, and the broken promise named where one of them lies.
#include "probe/torture.h"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "base/text.h"
#include "os/clock.h"
#include "os/pause.h"
#include "os/random.h"
#include "probe/history_checker.h"
#include "report/torture_page.h"
#include "service/lease_service.h"
#include "tests/support/history_checker.h"
#include "tests/support/lying_stores.h"

namespace stint::test {
namespace {

// A guard in memory: compare and write are one step; or, told so, it does not compare.
class MemoryTargets final : public probe::Targets {
 public:
  explicit MemoryTargets(bool lies) : lies_(lies) {}

  probe::TargetAnswer seal(const std::string& target, const api::Grip& grip) override {
    const std::lock_guard lock(mutex_);
    return admit(target, grip.token);
  }
  probe::TargetAnswer write(const std::string& target, const std::string& body,
                            const api::Grip& grip) override {
    const std::lock_guard lock(mutex_);
    const auto answer = admit(target, grip.token);
    if (answer.phase == Phase::Ok) bodies[target] = body;
    return answer;
  }
  Result<std::string> read(const std::string& target) override {
    const std::lock_guard lock(mutex_);
    return bodies[target];
  }

  std::map<std::string, std::string> bodies;

 private:
  probe::TargetAnswer admit(const std::string& target, Token token) {
    Token& fence = fences_[target];
    if (token < fence && !lies_) return {Phase::Fail, "stale"};
    fence = std::max(fence, token);
    return {Phase::Ok, {}};
  }

  const bool lies_;
  std::mutex mutex_;
  std::map<std::string, Token> fences_;
};

struct Played {
  HistoryReport report;
  std::size_t grants = 0;
  std::size_t stale = 0;
};

// Six clients in threads, until they have had so many grants.
Played play(const std::function<std::shared_ptr<store::Store>()>& open, bool lying_targets) {
  constexpr std::size_t kGrants = 120;
  const os::SystemClock clock;
  std::mutex mutex;
  std::string text;
  std::atomic<std::size_t> grants = 0;
  probe::History history("p", [&](const std::string& line) {
    const std::lock_guard lock(mutex);
    text += line;
    if (line.find("\"verb\":\"acquire\"") != line.npos && line.find("\"ok\"") != line.npos)
      ++grants;
  });
  MemoryTargets targets(lying_targets);
  const probe::TorturePlan plan{.prefix = "r", .resources = 2, .ttl = Millis(100), .lines = 100};
  const MonoTime deadline = clock.mono() + std::chrono::seconds(60);
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([&, i] {
      os::SystemRandom random;
      const auto store = open();
      auto life = service::begin_life(*store, random, clock.wall(), nullptr, {});
      if (!life) return;
      service::Ledger ledger(*store, clock, 1000);
      service::LeaseService leases(*store, ledger, *life, clock, random, nullptr);
      probe::torture_client(plan, cat("c", i),
                            {.leases = leases,
                             .targets = targets,
                             .history = history,
                             .clock = clock,
                             .random = random,
                             .pause = [](Nanos length) { os::pause_for(length); },
                             .stop = [&] { return grants >= kGrants || clock.mono() > deadline; }});
    });
  }
  for (std::thread& thread : threads) thread.join();
  auto events = probe::parse_history(text);
  EXPECT_TRUE(events.has_value());
  Played out;
  for (const HistoryEvent& event : *events) {
    if (event.phase == Phase::Fail && event.verb == verbs::kWrite) ++out.stale;
  }
  for (const auto& [target, body] : targets.bodies) {
    const auto lines = probe::parse_target(body);
    EXPECT_TRUE(lines.has_value());
    const int resource = target.at(std::string_view("target-").size()) - '0';
    for (auto& event : probe::landed_events(probe::resource_of(plan, resource), target, *lines)) {
      events->push_back(std::move(event));
    }
  }
  out.grants = grants;
  out.report = check_history(*events);
  return out;
}

std::shared_ptr<store::Store> memory(const Clock& clock) {
  return std::make_shared<store::MemoryStore>(clock);
}

TEST(Torture, FindsNothingWhereEverybodyKeepsTheirWord) {
  const os::SystemClock clock;
  const auto shared = memory(clock);
  const Played played = play([&] { return shared; }, false);
  EXPECT_TRUE(played.report.violations.empty()) << played.report.text();
  EXPECT_GE(played.grants, 120U);
  EXPECT_GT(played.stale, 0U) << "no stale write was tried: " << played.report.text();
  EXPECT_EQ(played.report.given_up, 0U);
}

TEST(Torture, NamesWhatALyingStoreBreaks) {
  const os::SystemClock clock;
  const auto shared = memory(clock);
  const Played played = play([&] { return std::make_shared<LastWriterWins>(shared); }, false);
  std::set<int> named;
  for (const Violation& one : played.report.violations) named.insert(one.invariant);
  EXPECT_TRUE(named.contains(1) || named.contains(3)) << played.report.text();
}

TEST(Torture, NamesWhatALyingTargetBreaks) {
  const os::SystemClock clock;
  const auto shared = memory(clock);
  const Played played = play([&] { return shared; }, true);
  std::set<int> named;
  for (const Violation& one : played.report.violations) named.insert(one.invariant);
  EXPECT_TRUE(named.contains(8)) << played.report.text();
}

TEST(TorturePage, EscapesHostileNamesAndDrawsWhatItIsGiven) {
  report::TortureStory story;
  story.store = "dir:/<script>alert(1)</script>";
  story.length = Millis(1000);
  story.counts = {{"operations", 3}};
  story.violations = {{"invariant 8 <b>", {"line 1: \"&<x>\""}}};
  story.lanes = {{.name = "r<0>",
                  .held = {{Millis(0), Millis(500), 1, "\"><svg onload=x>"}},
                  .writes = {{Millis(10), true, "a<b"}, {Millis(600), false, "c&d"}}}};
  const std::string page = report::torture_page(story);
  for (const char* bad : {"<script", "<b>", "<x>", "r<0>", "onload=x>", "a<b"}) {
    EXPECT_EQ(page.find(bad), std::string::npos) << bad;
  }
  EXPECT_NE(page.find("1 violation<"), std::string::npos);
  EXPECT_NE(page.find("<rect"), std::string::npos);
  EXPECT_NE(page.find("#c62828"), std::string::npos);
}

}  // namespace
}  // namespace stint::test
