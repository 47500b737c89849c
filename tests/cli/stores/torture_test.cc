// stint torture as users run it, on real stores: clean, and nothing left behind.
// EVIDENCE-OF: G1 G2 G3 G5
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/cli/stint.h"
#include "tests/support/servers.h"

namespace stint::test {
namespace {

class TortureOf : public ::testing::TestWithParam<const char*> {};

TEST_P(TortureOf, IsCleanTellsWhatItDidAndLeavesNothing) {
  Stint stint;
  stint.use_store(cat(GetParam(), stint.dir().file("store")));
  const std::string page = stint.dir().file("torture.html");
  const auto done = stint({"torture", "--for", "4s", "--clients", "4", "--json", "--report", page},
                          Millis(240'000));
  ASSERT_EQ(done.exit_code, 0) << done.out << done.err;
  EXPECT_EQ(json_field(done.out, "violations"), "0");
  EXPECT_NE(json_field(done.out, "grants"), "0");
  EXPECT_NE(json_field(done.out, "writes_accepted"), "0");
  const std::string html = read_text(page);
  EXPECT_NE(html.find("No promise was broken"), std::string::npos);
  EXPECT_NE(html.find("<svg"), std::string::npos);
  EXPECT_EQ(stint({"ls", "--json"}).out.find("torture-"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Stores, TortureOf, ::testing::Values("sqlite:", "dir:"),
                         [](const auto& param) {
                           return std::string(param.param) == "dir:" ? "Dir" : "Sqlite";
                         });

class TortureOfRedis : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = RedisServer::missing(); !why.empty()) GTEST_SKIP() << why;
    const auto started = redis_.start();
    ASSERT_TRUE(started) << started.error().message << redis_.log();
    stint_.use_store(redis_.url());
  }
  std::string say(const std::vector<std::string>& words) const {
    std::vector<std::string> argv = {"redis-cli", "-p", cat(redis_.port())};
    argv.insert(argv.end(), words.begin(), words.end());
    return run({.argv = std::move(argv)}).out;
  }

  RedisServer redis_;
  Stint stint_;
};

// The clients reach a server through a proxy that loses answers; the store itself is not told.
TEST_F(TortureOfRedis, LosesAnswersOnTheWayAndBreaksNothing) {
  const auto done = stint_({"torture", "--for", "6s", "--clients", "4", "--json"}, Millis(240'000));
  ASSERT_EQ(done.exit_code, 0) << done.out << done.err;
  EXPECT_EQ(json_field(done.out, "violations"), "0");
  EXPECT_NE(json_field(done.out, "grants"), "0");
  EXPECT_NE(json_field(done.out, "answers_lost"), "0") << done.out;
  EXPECT_EQ(stint_({"ls", "--json"}).out.find("torture-"), std::string::npos);
}

// A store that forgets who had a lease counts its tokens from the beginning.
TEST_F(TortureOfRedis, NamesTheInvariantThatAForgetfulStoreBreaksAndExitsWith1) {
  Child torture(stint_.command({"torture", "--for", "8s", "--clients", "4"}));
  bool forgot = false;
  while (torture.running()) {
    const std::string fields = say({"HKEYS", "{stint}:records"});
    for (const std::string_view field : split(fields, '\n')) {
      if (!field.starts_with(":own/torture-")) continue;
      forgot |= say({"HDEL", "{stint}:records", std::string(field)}) == "1\n";
    }
    torture.wait(Millis(300));
  }
  EXPECT_TRUE(forgot);
  const auto end = torture.wait(Millis(0));
  ASSERT_TRUE(end && end->code);
  EXPECT_EQ(*end->code, 1) << torture.err();
  EXPECT_NE(torture.out().find("invariant 1 (token monotone)"), std::string::npos) << torture.out();
}

TEST(TortureWords, AreChecked) {
  Stint stint;
  EXPECT_EQ(stint({"torture", "--clients", "0"}).exit_code, 2);
  EXPECT_EQ(stint({"torture", "--minutes", "x"}).exit_code, 2);
  EXPECT_EQ(stint({"torture", "extra"}).exit_code, 2);
  // What several processes cannot share would pass, or fail, without having been tried.
  for (const std::string& store : {std::string("memory:"), cat("log:", stint.dir().file("log"))}) {
    const auto refused = stint({"torture", "--for", "1s", "--store", store});
    EXPECT_EQ(refused.exit_code, 2) << refused.out << refused.err;
    EXPECT_NE(refused.err.find("one at a time"), std::string::npos) << refused.err;
  }
}

}  // namespace
}  // namespace stint::test
