#include "base/json_text.h"

#include <gtest/gtest.h>

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

TEST(JsonText, QuotesOneText) {
  EXPECT_EQ(json_quoted(""), R"("")");
  EXPECT_EQ(json_quoted("a[1]\"\\"), R"("a[1]\"\\")");
  EXPECT_EQ(json_quoted("\n\r\t\b é"), R"("\n\r\t\u0008 é")");
}

}  // namespace
}  // namespace stint
