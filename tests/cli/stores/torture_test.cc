// stint torture as users run it, on real stores: clean, and nothing left behind.
// EVIDENCE-OF: G1 G2 G3 G5
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/cli/stint.h"

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

TEST(TortureWords, AreChecked) {
  Stint stint;
  EXPECT_EQ(stint({"torture", "--clients", "0"}).exit_code, 2);
  EXPECT_EQ(stint({"torture", "--minutes", "x"}).exit_code, 2);
  EXPECT_EQ(stint({"torture", "extra"}).exit_code, 2);
}

}  // namespace
}  // namespace stint::test
