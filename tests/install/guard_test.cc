// stint::guard, through include/stint only, on a real sqlite: store.
#include "stint/guard.h"

#include <gtest/gtest.h>

#include <filesystem>

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

// EVIDENCE-OF: G5
TEST_F(GuardTest, AFileAndADirectoryAreReplacedUntilANewerHolderSeals) {
  const std::string page = dir_.file("page");
  const std::string site = dir_.file("site");
  const std::string staged = dir_.file("staged");
  std::filesystem::create_directory(staged);
  write_text(staged + "/a", "one");
  Holder first = hold();
  const auto written = guard::write(first, {.path = page, .body = "one"});
  ASSERT_TRUE(written) << written.error()->message;
  EXPECT_EQ(written->digest.size(), 64U);
  EXPECT_EQ(read_text(page), "one");
  const auto published = guard::publish(first, {.path = site, .staged = staged});
  ASSERT_TRUE(published) << published.error()->message;
  EXPECT_EQ(read_text(site + "/a"), "one");
  const auto unmet = guard::write(first, {.path = page, .body = "two", .if_match = "none"});
  EXPECT_NE(unmet.get_if<guard::Refusal>(), nullptr);
  // Both were remembered: the revoke seals them.
  ASSERT_TRUE(client_.revoke({.resource = "r", .expected = first.token(), .why = "test"}));
  write_text(staged + "/a", "late");
  const auto late = guard::write(first, {.path = page, .body = "late"});
  ASSERT_NE(late.get_if<guard::Refusal>(), nullptr);
  EXPECT_EQ(late.get_if<guard::Refusal>()->code, Code::Stale);
  EXPECT_EQ(late.get_if<guard::Refusal>()->fence, 2U);
  const auto late_tree = guard::publish(first, {.path = site, .staged = staged});
  ASSERT_NE(late_tree.get_if<guard::Refusal>(), nullptr);
  EXPECT_EQ(read_text(page), "one");
  EXPECT_EQ(read_text(site + "/a"), "one");
  Holder second = hold();
  const guard::WriteOptions once = {.path = page, .body = "two", .once = true, .key = "k"};
  ASSERT_TRUE(guard::write(second, once));
  const auto again = guard::write(second, once);
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->already);
  const auto other = guard::write(second, {.path = page, .body = "x", .once = true, .key = "y"});
  ASSERT_NE(other.get_if<guard::Refusal>(), nullptr);
  EXPECT_EQ(other.get_if<guard::Refusal>()->code, Code::Used);
  EXPECT_NE(guard::write(second, {.path = dir_.file("no/such"), .body = ""}).error(), nullptr);
}

TEST_F(GuardTest, WrongTargetsAreErrors) {
  Holder holder = hold();
  for (const char* bad : {"", "x", "proxy:", "file:../x", "postgres://u:pw@h/d#r"}) {
    const auto answer = guard::seal(holder, bad);
    ASSERT_NE(answer.error(), nullptr) << bad;
    EXPECT_EQ(answer.error()->code, Code::Invalid) << bad;
  }
  EXPECT_NE(guard::admit(holder, {.name = "", .key = "k"}, [] { return 0; }).error(), nullptr);
}

}  // namespace
}  // namespace stint::test
