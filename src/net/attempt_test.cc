#include "net/attempt.h"

#include <gtest/gtest.h>

#include "tests/conformance/stores.h"

namespace stint::net {
namespace {

HttpFailure failure(HttpFailure::Kind kind) {
  return {.kind = kind, .tls = false, .time = false, .text = ""};
}

TEST(Attempt, ThatMayHaveArrivedAndMustNotHappenTwiceIsUnknown) {
  const auto sent = failure(HttpFailure::Kind::MaybeSent);
  EXPECT_EQ(code_of(sent, Twice::Never), Code::UnknownOutcome);
  EXPECT_FALSE(may_repeat(sent, Twice::Never));
  EXPECT_EQ(code_of(sent, Twice::Harmless), Code::Unavailable);
  EXPECT_TRUE(may_repeat(sent, Twice::Harmless));
}

TEST(Attempt, ThatCertainlyDidNotArriveMayBeRepeated) {
  const auto kept = failure(HttpFailure::Kind::NotSent);
  for (const Twice twice : {Twice::Never, Twice::Harmless}) {
    EXPECT_EQ(code_of(kept, twice), Code::Unavailable);
    EXPECT_TRUE(may_repeat(kept, twice));
  }
}

TEST(Attempt, ADeadlineCountsDownAndTheNearerOneHolds) {
  testing::FakeClock clock;
  const Deadline deadline(clock, Millis(100));
  clock.advance(Millis(30));
  EXPECT_EQ(deadline.left(), Millis(70));
  EXPECT_EQ(deadline.within(Millis(500)).left(), Millis(70));
  EXPECT_EQ(deadline.within(Millis(10)).left(), Millis(10));
  clock.advance(Millis(70));
  EXPECT_TRUE(deadline.passed());
  EXPECT_TRUE(deadline.within(Millis(10)).passed());
}

TEST(Attempt, AServersWordsAreShownWithoutSecretsAndInOneLine) {
  EXPECT_EQ(scrubbed("no hunter2\nhunter2 here", {"hunter2", ""}).find("hunter2"),
            std::string::npos);
  EXPECT_EQ(scrubbed("no hunter2\nhunter2 here", {"hunter2", ""}).find('\n'), std::string::npos);
  EXPECT_LE(scrubbed(std::string(5000, 'x'), {}).size(), 200U);
}

}  // namespace
}  // namespace stint::net
