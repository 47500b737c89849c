#include "api/telling.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace stint::api {
namespace {

using std::chrono::seconds;

// A store that answers as it is told to, one answer a call; waiting moves the clock.
class TellingDesk final : public Clock {
 public:
  MonoTime mono() const override { return now_; }
  WallTime wall() const override { return {}; }

  Told<int> tell(std::vector<Result<int>> answers, Nanos patience, int stop_after = 1000) {
    const Retelling how{.clock = *this,
                        .until = now_ + patience,
                        .wait =
                            [&](MonoTime until) {
                              pauses.push_back(until - now_);
                              now_ = until;
                              return --stop_after > 0;
                            },
                        .say = [&](const Error& error) { said.push_back(error.message); }};
    return tell_until_heard<int>(how, [&]() -> Result<int> {
      ++asked;
      if (answers.size() > 1) {
        Result<int> first = answers.front();
        answers.erase(answers.begin());
        return first;
      }
      return answers.front();
    });
  }

  int asked = 0;
  std::vector<Nanos> pauses;
  std::vector<std::string> said;

 private:
  MonoTime now_{seconds(100)};
};

Error lost_answer() { return {Code::UnknownOutcome, "no answer"}; }

TEST(Telling, IsRepeatedUntilTheStoreIsBack) {
  TellingDesk desk;
  const auto told = desk.tell({unavailable("away"), unavailable("away"), 7}, seconds(30));
  EXPECT_EQ(told.answer.value(), 7);
  EXPECT_FALSE(told.unsure);
  EXPECT_EQ(desk.asked, 3);
  EXPECT_EQ(desk.said.size(), 1U);
}

TEST(Telling, SaysThatAnEarlierOneMayHaveBeenHeard) {
  TellingDesk desk;
  const auto told = desk.tell({lost_answer(), unavailable("away"), 7}, seconds(30));
  EXPECT_EQ(told.answer.value(), 7);
  EXPECT_TRUE(told.unsure);
}

TEST(Telling, WhatMayHaveBeenHeardOnceStaysUnknown) {
  TellingDesk desk;
  const auto told = desk.tell({lost_answer(), unavailable("away")}, seconds(30));
  EXPECT_EQ(told.answer.error().code, Code::UnknownOutcome);
}

TEST(Telling, EndsAtADefiniteAnswer) {
  TellingDesk desk;
  EXPECT_EQ(desk.tell({Error{Code::Denied, "no"}}, seconds(30)).answer.error().code, Code::Denied);
  EXPECT_EQ(desk.asked, 1);
  EXPECT_TRUE(desk.said.empty());
}

TEST(Telling, EndsWhenOthersMayHaveASayAndPausesNeverGrowBeyondTheirBound) {
  TellingDesk desk;
  const auto told = desk.tell({unavailable("away")}, seconds(60));
  EXPECT_EQ(told.answer.error().code, Code::Unavailable);
  Nanos all{0};
  for (const Nanos pause : desk.pauses) {
    EXPECT_LE(pause, Nanos(kLongestRetelling));
    all += pause;
  }
  EXPECT_EQ(all, Nanos(seconds(60)));
  EXPECT_EQ(desk.asked, static_cast<int>(desk.pauses.size()) + 1);  // once more at the very end
}

TEST(Telling, EndsWhenToldToStop) {
  TellingDesk desk;
  const auto told = desk.tell({lost_answer()}, seconds(60), 2);
  EXPECT_EQ(told.answer.error().code, Code::UnknownOutcome);
  EXPECT_EQ(desk.asked, 2);
}

}  // namespace
}  // namespace stint::api
