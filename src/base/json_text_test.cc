#include "base/json_text.h"

#include <gtest/gtest.h>

#include <string>

namespace stint {
namespace {

TEST(JsonText, WritesTextAndNumbersInOrder) {
  EXPECT_EQ(JsonText().field("a", 1).field("b", "x").field("c", -5).done(),
            R"({"a":1,"b":"x","c":-5})");
  EXPECT_EQ(JsonText().done(), "{}");
  EXPECT_EQ(JsonText().field_if("a", "").field_if("b", "y").done(), R"({"b":"y"})");
}

TEST(JsonText, EscapesWhatWouldBreakIt) {
  EXPECT_EQ(JsonText().field("k\"", "a\"b\\c\n\x01\x1f é").done(),
            "{\"k\\\"\":\"a\\\"b\\\\c\\n\\u0001\\u001f é\"}");
}

// Letters are looked at eight at a time: an escape is found wherever it stands.
TEST(JsonText, FindsAnEscapeAtEveryPlace) {
  const std::string plain = "0123456789 \x7f\xc3\xa9~!#[]";
  for (const std::string_view bad : {"\"", "\\", "\n", "\x1f"}) {
    const std::string escaped = json_quoted(bad).substr(1, json_quoted(bad).size() - 2);
    EXPECT_GT(escaped.size(), bad.size());
    for (std::size_t at = 0; at <= plain.size(); ++at) {
      const std::string before = plain.substr(0, at);
      const std::string after = plain.substr(at);
      EXPECT_EQ(json_quoted(before + std::string(bad) + after),
                "\"" + before + escaped + after + "\"");
    }
  }
}

TEST(JsonText, QuotesOneText) {
  EXPECT_EQ(json_quoted(""), R"("")");
  EXPECT_EQ(json_quoted("a[1]\"\\"), R"("a[1]\"\\")");
  EXPECT_EQ(json_quoted("\n\r\t\b é"), R"("\n\r\t\u0008 é")");
}

}  // namespace
}  // namespace stint
