// Real threads on one store, everything recorded, and the history judged.
// EVIDENCE-OF: G1 G2 G3
#include <gtest/gtest.h>

#include <thread>

#include "base/text.h"
#include "os/clock.h"
#include "os/pause.h"
#include "os/random.h"
#include "service/lease_service.h"
#include "store/memory/memory_store.h"
#include "tests/support/history_checker.h"
#include "tests/support/process.h"

namespace stint::test {
namespace {

constexpr int kClients = 4;
constexpr int kRounds = 40;
constexpr Millis kTtl(6);

class Party {
 public:
  Party() : store_(clock_), ledger_(store_, clock_, 1000), history_(folder_.file("history.jsonl")) {
    auto life = service::begin_life(store_, random_, clock_.wall(), nullptr, {});
    EXPECT_TRUE(life);
    service_.emplace(store_, ledger_, *life, clock_, random_, nullptr);
  }

  // Acquires, renews now and then, and either releases or walks away; often later than the ttl.
  void client(int number) {
    SeededRandom chance(static_cast<std::uint64_t>(number));
    RecordedLeases leases(*service_, history_, cat("c", number), clock_);
    const auto owner = Owner::parse(cat("c", number));
    for (int grants = 0; grants < kRounds;) {
      const auto resource = ResourceName::parse(cat("r", chance.below(2)));
      const Claim claim = Claim::make(random_);
      auto answer = leases.acquire({.resource = *resource,
                                    .owner = *owner,
                                    .claim = claim,
                                    .terms = {.ttl = kTtl},
                                    .note = {},
                                    .retake = {},
                                    .count_refusal = false});
      const auto* granted = answer ? std::get_if<api::Granted>(&*answer) : nullptr;
      if (granted == nullptr) {
        os::pause_for(Millis(1));
        continue;
      }
      ++grants;
      const api::Grip grip{.resource = *resource,
                           .token = granted->lease.token,
                           .claim = claim,
                           .owner = *owner,
                           .hint = granted->hint};
      for (std::uint64_t renewals = chance.below(4); renewals > 0; --renewals) {
        os::pause_for(Millis(chance.below(9)));
        if (!leases.renew(grip, kTtl)) return;
      }
      if (chance.below(3) != 0 && !leases.release(grip)) return;
    }
  }

  HistoryReport report() {
    auto history = load_history(folder_.file("history.jsonl"));
    EXPECT_TRUE(history);
    return check_history(*history);
  }

 private:
  os::SystemClock clock_;
  os::SystemRandom random_;
  store::MemoryStore store_;
  service::Ledger ledger_;
  TempDir folder_;
  History history_;
  std::optional<service::LeaseService> service_;
};

TEST(LeasesHistory, OfThreadsOnOneStoreIsClean) {
  Party party;
  std::vector<std::thread> threads;
  for (int i = 0; i < kClients; ++i) threads.emplace_back([&party, i] { party.client(i); });
  for (std::thread& thread : threads) thread.join();
  const HistoryReport report = party.report();
  EXPECT_TRUE(report.violations.empty()) << report.text();
  EXPECT_GE(report.operations, static_cast<std::size_t>(kClients * kRounds));
  EXPECT_GT(report.verbs.at("renew"), 10U);
}

}  // namespace
}  // namespace stint::test
