#include "base/toml_letters.h"

#include <gtest/gtest.h>

namespace stint {
namespace {

TEST(TomlLetters, StandInQuotesAndCommentsOnly) {
  for (const char* fine :
       {"", "a = 1", "a = \"\xC3\xA4\" # \xC3\xA4", "\"\xC3\xA4\" = '\xC3\xA4'",
        "a = \"\\\"\xC3\xA4\"", "a = \"\"\"\n\xC3\xA4\n\"\"\"\nb = 1", "a = '''\n\"\xC3\xA4'''",
        "\xEF\xBB\xBF"
        "a = 1"}) {
    EXPECT_TRUE(check_toml_letters(fine, "f")) << fine;
  }
  const auto wrong = check_toml_letters("a = \"\xC3\xA4\"\nb\xC3\xA4 = 1", "f.toml");
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, Code::Invalid);
  EXPECT_TRUE(wrong.error().message.starts_with("f.toml:2:2: ")) << wrong.error().message;
  for (const char* bad : {"\xC3\xA4 = 1", "a = \xC3\xA4", "a = 'x'\xC3\xA4", "a = \"x\n\xC3\xA4",
                          "a = '\\'\xC3\xA4'", "# x\n\xD0\x96", "\xFF"}) {
    EXPECT_FALSE(check_toml_letters(bad, "f")) << bad;
  }
}

}  // namespace
}  // namespace stint
