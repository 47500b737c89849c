#include "store/postgres/lanes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>

#include "os/pause.h"

namespace stint::store::postgres {
namespace {

struct Job {
  bool stands_still = false;  // alone, until it is told
  bool batch_stands_still = false;
  bool fits = true;
  std::optional<int> answer = {};  // with how many it travelled
};

class PostgresLanes : public ::testing::Test {
 protected:
  Lanes<Job>& lanes(Nanos longest_wait) {
    return lanes_.emplace(
        Lanes<Job>::Ways{.alone = [this](Job& job) { alone(job); },
                         .together = [this](const std::vector<Job*>& jobs) { together(jobs); },
                         .lanes = 2,
                         .most_together = 8,
                         .longest_wait = longest_wait});
  }
  void together(const std::vector<Job*>& jobs) {
    ++together_;
    if (std::ranges::any_of(jobs, &Job::batch_stands_still)) {
      ++still_;
      until([this] { return go_.load(); });
    }
    for (Job* job : jobs) {
      if (job->fits) job->answer = static_cast<int>(jobs.size());
    }
  }
  void alone(Job& job) {
    ++alone_;
    if (job.stands_still) {
      ++still_;
      until([this] { return go_.load(); });
    }
    job.answer = 1;
  }
  std::vector<std::thread> start(std::vector<Job>& jobs) {
    std::vector<std::thread> out;
    for (Job& job : jobs) out.emplace_back([&] { lanes_->run(job); });
    return out;
  }
  static void join(std::vector<std::thread>& threads) {
    for (std::thread& one : threads) one.join();
  }
  template <class Condition>
  static void until(Condition condition) {
    while (!condition()) os::pause_for(Millis(1));
  }

  std::optional<Lanes<Job>> lanes_;
  std::atomic<int> still_ = 0;
  std::atomic<bool> go_ = false;
  std::atomic<int> together_ = 0;
  std::atomic<int> alone_ = 0;
};

TEST_F(PostgresLanes, OneByOneEachGoesAlone) {
  lanes(Millis(20));
  for (int i = 0; i < 10; ++i) {
    Job job;
    lanes_->run(job);
    EXPECT_EQ(job.answer, 1);
  }
  EXPECT_EQ(together_, 0);
}

// Both lanes stand still: nobody stays in line for it, and nobody goes alone because of it.
TEST_F(PostgresLanes, WhoHasWaitedTakesTheLineAlong) {
  lanes(Millis(1'000));
  std::vector<Job> stuck(2, Job{.stands_still = true});
  auto standing = start(stuck);
  until([&] { return still_ == 2; });
  std::vector<Job> others(5);
  auto going = start(others);
  join(going);
  for (const Job& job : others) EXPECT_EQ(job.answer, 5);
  EXPECT_EQ(together_, 1);
  EXPECT_EQ(alone_, 2);
  go_ = true;
  join(standing);
}

// After a batch that takes long the line travels in batches.
TEST_F(PostgresLanes, WhoHasWaitedForABatchTakesTheLineAlong) {
  lanes(Millis(1'000));
  std::vector<Job> stuck(2, Job{.stands_still = true});
  auto standing = start(stuck);
  until([&] { return still_ == 2; });
  // One batch beside the two, and the other lane is led by one who stands still, too.
  std::vector<Job> slow(3, Job{.batch_stands_still = true});
  auto travelling = start(slow);
  until([&] { return still_ == 3; });
  std::vector<Job> last(1, Job{.stands_still = true});
  auto beside = start(last);
  until([&] { return still_ == 4; });
  std::vector<Job> others(5);
  auto going = start(others);
  join(going);
  for (const Job& job : others) EXPECT_EQ(job.answer, 5);
  EXPECT_EQ(together_, 2);
  EXPECT_EQ(alone_, 3);
  go_ = true;
  join(travelling);
  join(beside);
  join(standing);
}

// Once somebody has waited for a lane that stands still, the next ones need not.
TEST_F(PostgresLanes, ALaneThatStandsStillIsReplaced) {
  lanes(Millis(2'000));
  std::vector<Job> stuck(2, Job{.stands_still = true});
  auto standing = start(stuck);
  until([&] { return still_ == 2; });
  Job first;
  lanes_->run(first);
  const MonoTime begun = os::system_clock().mono();
  for (int i = 0; i < 20; ++i) {
    Job job;
    lanes_->run(job);
    EXPECT_EQ(job.answer, 1);
  }
  EXPECT_LT(os::system_clock().mono() - begun, Millis(2'000));
  go_ = true;
  join(standing);
  // And it is a lane again.
  EXPECT_EQ(lanes_->waiting(), 0U);
}

TEST_F(PostgresLanes, WhoWaitsTravelsWithTheOthersAndWhoDoesNotFitGoesAloneAfterThem) {
  lanes(Millis(60'000));
  std::vector<Job> stuck(2, Job{.stands_still = true});
  auto standing = start(stuck);
  until([&] { return still_ == 2; });
  std::vector<Job> others(5);
  others[3].fits = false;
  auto going = start(others);
  until([&] { return lanes_->waiting() == 5; });
  go_ = true;
  join(standing);
  join(going);
  EXPECT_GE(together_, 1);
  EXPECT_EQ(others[3].answer, 1);
  int travelled = 0;
  for (const Job& job : others) travelled += *job.answer > 1 ? 1 : 0;
  EXPECT_GE(travelled, 3);
}

TEST_F(PostgresLanes, EverybodyGetsAnAnswer) {
  lanes(Millis(20));
  std::vector<std::thread> threads;
  std::atomic<int> answered = 0;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 500; ++i) {
        Job job;
        job.fits = (i + t) % 7 != 0;
        lanes_->run(job);
        answered += job.answer ? 1 : 0;
      }
    });
  }
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(answered, 16 * 500);
}

}  // namespace
}  // namespace stint::store::postgres
