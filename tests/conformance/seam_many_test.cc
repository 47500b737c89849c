// The seam: many threads and many processes at once.
#include <algorithm>
#include <csignal>
#include <map>
#include <thread>

#include "tests/conformance/seam_fixture.h"

namespace stint::testing {
namespace {

class SeamMany : public SeamTest {};
STINT_FOR_EVERY_STORE(SeamMany);

// Reads a number and writes it back plus one, on the version read; again on a conflict.
bool count_up(store::Store& store, const std::string& key) {
  while (true) {
    auto reading = store.read({key});
    if (!reading) return false;
    const store::Entry& entry = reading->entries.front();
    const int number = entry.present() ? std::stoi(entry.value) : 0;
    Step step = set(key, std::to_string(number + 1));
    step = entry.present() ? seen(step, entry.version) : absent(step);
    auto answer = store.commit({step, append("log/", "x")}, store::Sync::Durable);
    if (!answer) return false;
    if (std::holds_alternative<store::Committed>(*answer)) return true;
  }
}

TEST_P(SeamMany, ThreadsLoseNoIncrement) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) EXPECT_TRUE(count_up(*store_, "counter"));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(get("counter").value, "200");
  EXPECT_EQ(keys(under("log/", "", 1000)).size(), 200U);
}

// What many append at once has one order, the same by pages, backwards, one by one, and for others.
TEST_P(SeamMany, AppendedRecordsHaveOneOrderHoweverTheyAreRead) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const std::string text = std::to_string(t) + ":" + std::to_string(i);
        EXPECT_TRUE(store_->commit({append("log/", text), append("log/", text + "b")},
                                   store::Sync::Relaxed));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto other = site_->open();
  const auto read_pages = [&](std::size_t limit, bool backwards) {
    std::vector<std::string> out;
    while (true) {
      const auto page =
          other->scan(under("log/", out.empty() ? "" : out.back(), limit, backwards)).value();
      for (const store::Entry& entry : page.entries) out.push_back(entry.key);
      if (page.entries.size() < limit) return out;
    }
  };
  const auto all = keys(under("log/", "", 10'000));
  ASSERT_EQ(all.size(), 800U);
  EXPECT_TRUE(std::is_sorted(all.begin(), all.end()));
  EXPECT_EQ(read_pages(37, false), all);
  EXPECT_EQ(read_pages(37, true), std::vector<std::string>(all.rbegin(), all.rend()));
  EXPECT_EQ(store_->appended("log/").value(), 800U);
  const auto fresh = site_->open();
  EXPECT_EQ(fresh->scan(under("log/", all[500], 1)).value().entries.front().key, all[501]);
  EXPECT_EQ(fresh->scan(under("log/", all[500], 1, true)).value().entries.front().key, all[499]);
  const store::Entry one = site_->open()->read({all[333]}).value().entries.front();
  ASSERT_TRUE(one.present());
  const auto gone =
      site_->open()->commit({remove(all[0]), seen(remove(all[333]), one.version), remove(all[799])},
                            store::Sync::Relaxed);
  ASSERT_TRUE(gone && std::holds_alternative<store::Committed>(*gone));
  const auto left = keys(under("log/", "", 10'000));
  EXPECT_EQ(left.size(), 797U);
  EXPECT_EQ(std::count(left.begin(), left.end(), all[333]), 0);
  // A thread's own appends stand in the order in which it made them, each pair together.
  std::map<char, int> next;
  for (const store::Entry& entry : scan(under("log/", "", 10'000))) {
    if (entry.value.back() == 'b') continue;
    const int number = std::stoi(entry.value.substr(2));
    EXPECT_GE(number, next[entry.value.front()]);
    next[entry.value.front()] = number + 1;
  }
}

TEST_P(SeamMany, OfMakersExactlyOneWins) {
  std::atomic<int> winners = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      const auto answer = store_->commit({absent(set("one", "v"))}, store::Sync::Durable);
      if (answer && std::holds_alternative<store::Committed>(*answer)) ++winners;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(winners, 1);
}

TEST_P(SeamMany, AReadSeesTwoRecordsOfOneCommitTogether) {
  commit({set("a", "0"), set("b", "0")});
  std::atomic<bool> stop = false;
  std::thread writer([&] {
    for (int i = 1; i <= 200; ++i) {
      const std::string n = std::to_string(i);
      EXPECT_TRUE(store_->commit({set("a", n), set("b", n)}, store::Sync::Relaxed).has_value());
    }
    stop = true;
  });
  while (!stop) {
    const auto entries = store_->read({"a", "b"}).value().entries;
    EXPECT_EQ(entries[0].value, entries[1].value);
  }
  writer.join();
}

TEST_P(SeamMany, ProcessesLoseNoIncrement) {
  if (!GetParam().across_processes) GTEST_SKIP() << GetParam().name << " lives in one process";
  store_.reset();
  const auto codes = in_processes(8, [&](int) {
    const auto store = site_->open();
    for (int i = 0; i < 20; ++i) {
      if (!count_up(*store, "counter")) return 1;
    }
    return 0;
  });
  EXPECT_EQ(codes, std::vector<int>(8, 0));
  store_ = site_->open();
  EXPECT_EQ(get("counter").value, "160");
  EXPECT_EQ(keys(under("log/", "", 1000)).size(), 160U);
}

// EVIDENCE-OF: G11
TEST_P(SeamMany, AnAcknowledgedCommitSurvivesTheDeathOfItsProcess) {
  if (!GetParam().across_processes) GTEST_SKIP() << GetParam().name << " lives in one process";
  store_.reset();
  const auto codes = in_processes(1, [&](int) -> int {
    const auto store = site_->open();
    if (!count_up(*store, "counter")) return 1;
    ::raise(SIGKILL);
    return 2;
  });
  EXPECT_EQ(codes.front(), 128 + SIGKILL);
  store_ = site_->open();
  EXPECT_EQ(get("counter").value, "1");
}

}  // namespace
}  // namespace stint::testing
