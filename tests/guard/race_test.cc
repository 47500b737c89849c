// Many writers at one file at the same time, and holders that follow each other: accepted tokens
// never go down, and no update is lost.
//
// `make test` plays a slice; STINT_PLAYS=10000 plays as many.
// EVIDENCE-OF: G5
#include <atomic>
#include <cstdlib>
#include <iostream>
#include <thread>

#include "base/random.h"
#include "tests/guard/site_fixture.h"
#include "tests/support/slice.h"

namespace stint::test {
namespace {

void stand_still(std::uint64_t turns) {
  for (std::uint64_t i = 0; i < turns; ++i) std::this_thread::yield();
}

struct Outcome {
  bool accepted = false;
  std::string error;
};

// A number that is kept in a file, or in a file of a directory that is published as a whole.
class Counter {
 public:
  Counter(const MemoryDir& dir, const std::string& name, bool tree)
      : path_(dir.file(name)), staging_(dir.file("staging-" + name)), tree_(tree) {}

  std::uint64_t read() const {
    return parse_digits(read_text(tree_ ? path_ + "/count" : path_)).value_or(0);
  }
  Result<guard::SealAnswer> seal(std::uint64_t token, IssuingFences& fences) const {
    const auto request = seal_with(pass_with(token));
    return tree_ ? guard::seal_directory(path_, request, &fences)
                 : guard::seal_file(path_, request, &fences);
  }
  // `who` of those that share a token.
  Result<guard::WriteAnswer> write(std::uint64_t token, std::uint64_t number, IssuingFences& fences,
                                   std::size_t who = 0) const {
    if (!tree_) {
      return guard::write_file({.path = path_, .body = cat(number)}, pass_with(token), &fences);
    }
    const std::string staged = cat(staging_, token, '-', who);
    fs::create_directories(staged);
    write_text(staged + "/count", cat(number));
    return guard::publish_directory({.path = path_, .staged = staged}, pass_with(token), &fences);
  }

 private:
  const std::string path_;
  const std::string staging_;
  const bool tree_;
};

// 8 writers with tokens of their own, and 2 more that share the highest and the lowest.
void race_all(std::uint64_t rounds, bool tree) {
  constexpr std::uint64_t kTokens = 8;
  const MemoryDir dir;
  std::uint64_t accepted = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const Counter counter(dir, cat("f", round % 7), tree);
    const std::uint64_t base = round * kTokens;
    std::vector<std::uint64_t> tokens;
    for (std::uint64_t i = 1; i <= kTokens; ++i) tokens.push_back(base + i);
    tokens.push_back(base + kTokens);
    tokens.push_back(base + 1);
    std::vector<Outcome> outcomes(tokens.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      threads.emplace_back([&, i] {
        // Each was the newest when it was granted: its own store's word says so.
        IssuingFences fences;
        fences.issue(tokens[i]);
        SeededRandom chance(round * 31 + i);
        stand_still(chance.below(40));
        const auto answer = counter.write(tokens[i], tokens[i], fences, i);
        outcomes[i] = {done(answer), answer ? "" : answer.error().message};
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::uint64_t highest = 0;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      EXPECT_EQ(outcomes[i].error, "");
      if (!outcomes[i].accepted) continue;
      highest = std::max(highest, tokens[i]);
      ++accepted;
    }
    ASSERT_EQ(highest, base + kTokens) << "the newest is never refused";
    ASSERT_EQ(counter.read(), highest) << "round " << round;
    ASSERT_EQ(kept_in(dir.path(), ".stage."), std::vector<std::string>{});
  }
  std::cout << rounds << " rounds of 10 writers, " << accepted << " writes accepted\n";
  EXPECT_GT(accepted, rounds);
}

TEST(GuardRace, TheHighestAcceptedTokenIsWhatStands) {
  race_all(static_cast<std::uint64_t>(plays(150)), false);
}
TEST(GuardRace, TheHighestAcceptedTokenIsWhatStandsAsADirectory) {
  race_all(static_cast<std::uint64_t>(plays(60)), true);
}

// An exchange that is done twice is undone: of those who repeat one write of mode once, one does
// it.
TEST(GuardRace, RepeatsOfOneWriteOfADirectoryDoNotUndoIt) {
  const auto rounds = static_cast<std::uint64_t>(plays(60));
  const MemoryDir dir;
  const std::string path = dir.file("tree");
  for (std::uint64_t round = 1; round <= rounds; ++round) {
    const std::string staged = dir.file(cat("staged", round));
    fs::create_directories(staged);
    write_text(staged + "/count", cat(round));
    std::vector<std::string> told_wrong(4);
    std::vector<std::thread> threads;
    for (std::string& wrong : told_wrong) {
      threads.emplace_back([&] {
        IssuingFences fences;
        fences.issue(round);
        guard::Pass pass = pass_with(round);
        pass.mode = core::FenceMode::Once;
        pass.key = "one write";
        const auto answer =
            guard::publish_directory({.path = path, .staged = staged}, pass, &fences);
        if (!done(answer)) wrong = answer ? "refused" : answer.error().message;
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(told_wrong, std::vector<std::string>(4)) << "round " << round;
    ASSERT_EQ(read_text(path + "/count"), cat(round));
  }
  EXPECT_EQ(kept_in(dir.path(), ".stage."), std::vector<std::string>{});
}

// Accepted tokens never go down over time: seen by one who reads all the while.
TEST(GuardRace, WhatAReaderSeesNeverGoesBack) {
  const MemoryDir dir;
  const std::string path = dir.file("f");
  const auto rounds = static_cast<std::uint64_t>(plays(400));
  std::atomic<bool> stop = false;
  std::atomic<int> went_back = 0;
  std::thread reader([&] {
    std::uint64_t last = 0;
    while (!stop) {
      const auto seen = parse_digits(read_text(path)).value_or(last);
      if (seen < last) ++went_back;
      last = std::max(last, seen);
    }
  });
  std::vector<std::thread> writers;
  std::atomic<std::uint64_t> next = 0;
  for (int i = 0; i < 3; ++i) {
    writers.emplace_back([&] {
      while (true) {
        const std::uint64_t token = ++next;
        if (token > rounds) return;
        IssuingFences fences;
        fences.issue(token);
        const auto answer =
            guard::write_file({.path = path, .body = cat(token)}, pass_with(token), &fences);
        EXPECT_TRUE(answer) << told(answer);
      }
    });
  }
  for (std::thread& thread : writers) thread.join();
  stop = true;
  reader.join();
  EXPECT_EQ(went_back, 0);
}

struct Tally {
  std::atomic<std::uint64_t> accepted = 0;
  std::atomic<std::uint64_t> refused = 0;
  std::atomic<int> faults = 0;
};

// One holder: seal, then read, then write, as often as it is let.
void hold(const Counter& counter, IssuingFences& fences, std::uint64_t token, std::uint64_t seed,
          Tally& tally) {
  SeededRandom chance(seed);
  stand_still(chance.below(30));
  const auto sealed = counter.seal(token, fences);
  if (!sealed) ++tally.faults;
  if (!done(sealed)) {
    ++tally.refused;
    return;
  }
  for (std::uint64_t i = 0; i <= chance.below(3); ++i) {
    const std::uint64_t count = counter.read();
    stand_still(chance.below(20));
    const auto written = counter.write(token, count + 1, fences);
    if (!written) ++tally.faults;
    if (!done(written)) {
      ++tally.refused;
      return;
    }
    ++tally.accepted;
  }
}

// A holder reads, adds one, writes; the next one comes at any moment. Each accepted write is in the
// final count: none was lost, and none that came late was let in.
void play_all(std::uint64_t rounds, bool tree) {
  std::uint64_t accepted = 0;
  std::uint64_t refused = 0;
  for (std::uint64_t play = 0; play < rounds; ++play) {
    const MemoryDir dir;
    const Counter counter(dir, "count", tree);
    IssuingFences fences;
    fences.issue(1);
    SeededRandom chance(play);
    const std::uint64_t holders = 2 + chance.below(4);
    Tally tally;
    std::vector<std::thread> threads;
    for (std::uint64_t token = 1; token <= holders; ++token) {
      fences.issue(token);
      threads.emplace_back([&, token] { hold(counter, fences, token, play * 100 + token, tally); });
      stand_still(chance.below(60));
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(tally.faults, 0) << "play " << play;
    ASSERT_EQ(counter.read(), tally.accepted) << "play " << play;
    accepted += tally.accepted;
    refused += tally.refused;
  }
  std::cout << rounds << " plays, " << accepted << " updates accepted, " << refused
            << " refused, 0 lost\n";
  EXPECT_GT(refused, 0U);
  EXPECT_GT(accepted, rounds);
}

TEST(GuardRace, NoUpdateIsLost) { play_all(static_cast<std::uint64_t>(plays(500)), false); }
TEST(GuardRace, NoUpdateOfADirectoryIsLost) {
  play_all(static_cast<std::uint64_t>(plays(150)), true);
}

}  // namespace
}  // namespace stint::test
