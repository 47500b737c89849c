#include "base/json_value.h"

#include <gtest/gtest.h>

namespace stint {
namespace {

bool reads(std::string_view text, const JsonLimits& limits = {}) {
  return JsonValue::parse(text, limits).has_value();
}

TEST(JsonValueReads, WhatIsJson) {
  for (const char* text : {"{}", "[]", "null", "true", "-1", " {\"a\" : [1, \"x\"] } ",
                           "\"\\u00e9\\n\"", "\"\\ud83d\\ude00\"", "-9223372036854775808"}) {
    EXPECT_TRUE(reads(text)) << text;
  }
}

TEST(JsonValueRefuses, WhatTwoReadersWouldTakeDifferently) {
  for (const char* text : {"",
                           "{",
                           "{\"a\":1,\"a\":2}",
                           "{\"a\":1,\"\\u0061\":2}",
                           "01",
                           "1.0",
                           "1e3",
                           "+1",
                           "NaN",
                           "9223372036854775808",
                           "\"\\ud800\"",
                           "\"\\udc00\"",
                           "\"\\ud800x\"",
                           "\"\t\"",
                           "\"\\x\"",
                           "[1,]",
                           "{\"a\":1,}",
                           "{a:1}",
                           "'a'",
                           "1 2",
                           "/**/1",
                           "\xef\xbb\xbf{}",
                           "\"\xff\"",
                           "\"\\u00g0\"",
                           "tru",
                           "[1",
                           "\"a"}) {
    EXPECT_FALSE(reads(text)) << text;
  }
}

TEST(JsonValueRefuses, WhatIsTooDeepOrTooMuch) {
  EXPECT_TRUE(reads("[[1]]", {.depth = 2, .values = 3}));
  EXPECT_FALSE(reads("[[1]]", {.depth = 1, .values = 3}));
  EXPECT_FALSE(reads("[[1]]", {.depth = 2, .values = 2}));
  EXPECT_FALSE(reads(std::string(100'000, '[')));
}

TEST(JsonValueReads, EscapesAsUtf8) {
  const auto value = JsonValue::parse("\"\\u00e9\\u20ac\\ud83d\\ude00\\/\"");
  ASSERT_TRUE(value);
  EXPECT_EQ(*value->if_text(), "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80/");
}

TEST(JsonFieldsTell, TheFirstThingThatIsWrong) {
  const auto value = JsonValue::parse("{\"n\":\"x\",\"t\":-1,\"d\":-5,\"more\":null}");
  ASSERT_TRUE(value);
  JsonFields none(*value);
  EXPECT_EQ(none.find("more"), nullptr);
  EXPECT_TRUE(none.done());
  none.refuse_others();
  EXPECT_FALSE(none.done());
  JsonFields number(*value);
  (void)number.number("n");
  EXPECT_NE(number.done().error().message.find("'n'"), std::string::npos);
  JsonFields token(*value);
  (void)token.token("t");
  EXPECT_FALSE(token.done());
  JsonFields time(*value);
  (void)time.millis("d");
  EXPECT_FALSE(time.done());
  JsonFields missing(*value);
  missing.require("absent");
  EXPECT_FALSE(missing.done());
}

}  // namespace
}  // namespace stint
