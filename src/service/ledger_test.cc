#include "service/ledger.h"

#include <gtest/gtest.h>

#include "store/memory/memory_store.h"
#include "tests/conformance/stores.h"

namespace stint::service {
namespace {

class LedgerTest : public ::testing::Test {
 protected:
  api::Event event(std::string kind, std::string owner = "bob") {
    api::Event out;
    out.at = clock_.wall();
    out.kind = std::move(kind);
    out.resource = "db";
    out.owner = std::move(owner);
    return out;
  }
  static std::vector<api::Event> all(Ledger& ledger) {
    return ledger.list({.after = "", .prefix = "", .limit = 100'000, .newest = false}).value();
  }
  static std::int64_t count_of(const api::Event& line) {
    for (const auto& [name, value] : line.details) {
      if (name == "count") return std::get<std::int64_t>(value);
    }
    return -1;
  }
  // The counts of the lines, in order.
  static std::vector<std::int64_t> counts(Ledger& ledger) {
    std::vector<std::int64_t> out;
    for (const api::Event& line : all(ledger)) out.push_back(count_of(line));
    return out;
  }
  void refuse(Ledger& ledger, int times) {
    for (int i = 0; i < times; ++i) ledger.refused(event("refused_held"));
  }

  testing::FakeClock clock_;
  store::MemoryStore store_{clock_};
};

using Counts = std::vector<std::int64_t>;

TEST_F(LedgerTest, WritesTheFirstRefusalAtOnceAndTheRestOfTheMinuteAsOneLine) {
  Ledger ledger(store_, clock_, 1000);
  refuse(ledger, 1);
  ledger.flush();
  EXPECT_EQ(counts(ledger), Counts{1});
  refuse(ledger, 5);
  ledger.flush();
  EXPECT_EQ(counts(ledger), Counts{1});
  clock_.advance(std::chrono::minutes(1));
  ledger.flush();
  EXPECT_EQ(counts(ledger), (Counts{1, 5}));
  ledger.flush();
  EXPECT_EQ(counts(ledger).size(), 2U);
}

TEST_F(LedgerTest, GivesEveryMinuteItsLineAlsoWhenRefusalsNeverPause) {
  Ledger ledger(store_, clock_, 1000);
  for (int minute = 0; minute < 4; ++minute) {
    refuse(ledger, 1);
    ledger.flush();
    refuse(ledger, 2);
    ledger.flush();
    clock_.advance(std::chrono::minutes(1));
  }
  refuse(ledger, 1);
  ledger.flush();
  EXPECT_EQ(counts(ledger), (Counts{1, 2, 1, 2, 1, 2, 1, 2, 1}));
}

TEST_F(LedgerTest, CountsOwnersAndKindsApart) {
  Ledger ledger(store_, clock_, 1000);
  ledger.refused(event("refused_held", "bob"));
  ledger.refused(event("refused_held", "cy"));
  ledger.refused(event("refused_other", "bob"));
  ledger.flush();
  EXPECT_EQ(counts(ledger), (Counts{1, 1, 1}));
}

TEST_F(LedgerTest, WritesWhatIsPendingWhenItGoes) {
  {
    Ledger ledger(store_, clock_, 1000);
    refuse(ledger, 1);
    ledger.flush();
    refuse(ledger, 3);
  }
  Ledger ledger(store_, clock_, 1000);
  EXPECT_EQ(counts(ledger), (Counts{1, 3}));
}

TEST_F(LedgerTest, KeepsAboutAsManyAsItWasToldAndDropsTheOldest) {
  Ledger ledger(store_, clock_, 100);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(ledger.record(event("k", std::to_string(i))));
  const auto lines = all(ledger);
  EXPECT_GE(lines.size(), 100U);
  EXPECT_LE(lines.size(), 100U + 4 * 64U);
  EXPECT_EQ(lines.back().owner, "999");
  EXPECT_EQ(std::stoi(lines.front().owner), 1000 - static_cast<int>(lines.size()));
}

TEST_F(LedgerTest, PagesThroughMoreThanOneReading) {
  Ledger ledger(store_, clock_, 100'000);
  for (int i = 0; i < 1203; ++i) ASSERT_TRUE(ledger.record(event(i % 2 == 0 ? "even" : "odd")));
  EXPECT_EQ(all(ledger).size(), 1203U);
  const auto some =
      ledger.list({.after = "", .prefix = "none", .limit = 10, .newest = false}).value();
  EXPECT_TRUE(some.empty());
}

}  // namespace
}  // namespace stint::service
