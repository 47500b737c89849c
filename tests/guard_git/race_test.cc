// Many holders push to one branch at the same time, each the newest when it was granted: the tokens
// of what landed never go down. STINT_PLAYS: how many rounds (a slice in `make test`).
// EVIDENCE-OF: G5
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <iostream>
#include <mutex>
#include <thread>

#include "base/random.h"
#include "base/text.h"
#include "os/pause.h"
#include "tests/guard_git/git_world.h"
#include "tests/support/slice.h"

namespace stint::test {
namespace {

constexpr std::size_t kHolders = 8;
constexpr std::size_t kPushers = kHolders + 2;  // the first and the last push from two processes

class GitRace : public testing::Test {
 protected:
  // As a person would: fetch, commit on top, push; again where the branch had moved. The exit code.
  int push_until_told(std::size_t who, const Grant& grant) {
    const std::string clone = clones_[who];
    for (int tries = 0; tries < 50; ++tries) {
      world_.git(clone, {"fetch", "-q"});
      world_.git(clone, {"reset", "-q", "--hard", "origin/main"});
      world_.commit(clone, cat("token ", grant.token, " by ", who));
      const Finished pushed = world_.push(clone, grant);
      // 69: others were in the way every time.
      if (pushed.exit_code != 1 && pushed.exit_code != 69) {
        EXPECT_TRUE(pushed.exit_code == 0 || pushed.exit_code == 13) << pushed.err;
        return pushed.exit_code.value_or(-1);
      }
    }
    ADD_FAILURE() << "the branch moves faster than it can be followed";
    return 1;
  }
  std::vector<std::uint64_t> landed() {
    std::vector<std::uint64_t> out;
    const std::string clone = clones_.front();
    world_.git(clone, {"fetch", "-q"});
    const Finished log =
        world_.git(clone, {"log", "--reverse", "--format=%s", "--grep=^token ", "origin/main"});
    for (const std::string_view line : split(log.out, '\n')) {
      if (line.starts_with("token ")) out.push_back(parse_digits(split(line, ' ')[1]).value_or(0));
    }
    return out;
  }
  void round();

  GitWorld world_;
  std::vector<std::string> clones_;
  std::uint64_t accepted_ = 0;
  std::uint64_t refused_ = 0;
  std::atomic<std::uint64_t> seed_ = 0;
};

void GitRace::round() {
  constexpr std::uint64_t kSpreadMs = 2000;  // so that a grant may come at any moment of a push
  std::mutex taking;
  std::vector<int> codes(kPushers, -1);
  std::vector<std::thread> threads;
  std::string newest;
  for (std::size_t who = 0; who < kHolders; ++who) {
    threads.emplace_back([&, who] {
      Grant grant;
      os::pause_for(Millis(SeededRandom(++seed_ * 31).below(kSpreadMs)));
      {
        const std::scoped_lock lock(taking);
        grant = world_.take(cat("h", who));
        newest = grant.token;
      }
      std::thread second;
      if (who == 0 || who + 1 == kHolders) {
        const std::size_t other = who == 0 ? kHolders : kHolders + 1;
        second = std::thread([&, other, grant] { codes[other] = push_until_told(other, grant); });
      }
      codes[who] = push_until_told(who, grant);
      if (second.joinable()) second.join();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int code : codes) ++(code == 0 ? accepted_ : refused_);
  const std::vector<std::uint64_t> tokens = landed();
  EXPECT_TRUE(std::ranges::is_sorted(tokens));
  ASSERT_FALSE(tokens.empty());
  EXPECT_EQ(cat(tokens.back()), newest) << "the newest is never refused";
  EXPECT_EQ(tokens.size(), accepted_) << "told and landed are the same";
  EXPECT_EQ(world_.fence_line("token"), newest);
}

TEST_F(GitRace, OfTenPushersTokensNeverGoDown) {
  for (std::size_t who = 0; who < kPushers; ++who) clones_.push_back(world_.clone(cat("c", who)));
  const int rounds = plays(1);
  for (int i = 0; i < rounds && !HasFailure(); ++i) round();
  std::cout << rounds << " rounds of 10 pushers, " << accepted_ << " pushes accepted, " << refused_
            << " refused\n";
}

}  // namespace
}  // namespace stint::test
