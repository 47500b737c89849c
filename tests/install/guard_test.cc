// stint::guard, through include/stint only, on a real sqlite: store.
#include "stint/guard.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/support/process.h"

namespace stint::test {
namespace {

class GuardTest : public testing::Test {
 protected:
  GuardTest() {
    ::setenv("XDG_STATE_HOME", dir_.file("state").c_str(), 1);
    ::setenv("XDG_CONFIG_HOME", dir_.file("config").c_str(), 1);
  }
  Holder hold(const std::string& resource = "r") {
    auto holder = Holder::acquire(client_, {.resource = resource});
    if (!holder) ADD_FAILURE() << "not acquired";
    return std::move(*holder);
  }

  TempDir dir_;
  Client client_ = *Client::open({.store = cat("sqlite:", dir_.file("s.db"))});
};

// EVIDENCE-OF: G5
TEST_F(GuardTest, AfterANewHoldersSealTheOldOneIsRefused) {
  Holder first = hold();
  ASSERT_TRUE(guard::seal(first, "admit:site"));
  ASSERT_TRUE(client_.revoke({.resource = "r", .expected = first.token(), .why = "test"}));
  const auto refused = guard::seal(first, "admit:site");
  const auto* why = refused.get_if<guard::Refusal>();
  ASSERT_NE(why, nullptr);
  EXPECT_EQ(why->code, Code::Stale);
  EXPECT_EQ(why->offered, 1U);
  Holder second = hold();
  EXPECT_EQ(second.token(), 3U);
  const auto late =
      guard::admit(first, {.name = "site", .key = "k"}, [] { return ADD_FAILURE() << "ran", 0; });
  ASSERT_NE(late.get_if<guard::Refusal>(), nullptr);
  EXPECT_EQ(late.get_if<guard::Refusal>()->fence, 2U) << "sealed by the revoke";
  ASSERT_TRUE(guard::seal(second, "admit:site"));
}

TEST_F(GuardTest, AnActHasOneResultAndAnOvertakenOneDoesNotCount) {
  Holder first = hold();
  const auto done = guard::admit(first, {.name = "site", .key = "k"}, [] { return 7; });
  ASSERT_TRUE(done);
  EXPECT_EQ(done->result, 7);
  const auto again = guard::admit(first, {.name = "site", .key = "k"}, [] { return 8; });
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->already);
  EXPECT_EQ(again->result, 7);
  const auto overtaken = guard::admit(first, {.name = "site", .key = "k2"}, [&] {
    EXPECT_TRUE(client_.revoke({.resource = "r", .expected = first.token(), .why = "test"}));
    Holder next = hold();
    EXPECT_TRUE(guard::admit(next, {.name = "site", .key = "k2"}, [] { return 1; }));
    return 0;
  });
  const auto* late = overtaken.get_if<guard::Refusal>();
  ASSERT_NE(late, nullptr);
  EXPECT_TRUE(late->ran);
}

TEST_F(GuardTest, WrongTargetsAreErrors) {
  Holder holder = hold();
  for (const char* bad : {"", "x", "proxy:http://h/", "file:../x", "postgres://u:pw@h/d#r"}) {
    const auto answer = guard::seal(holder, bad);
    ASSERT_NE(answer.error(), nullptr) << bad;
    EXPECT_EQ(answer.error()->code, Code::Invalid) << bad;
  }
  EXPECT_NE(guard::admit(holder, {.name = "", .key = "k"}, [] { return 0; }).error(), nullptr);
}

}  // namespace
}  // namespace stint::test
