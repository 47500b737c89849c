#include "store/etcd/append_numbers.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "store/etcd/keys.h"

namespace stint::store::etcd {
namespace {

TEST(AppendNumbers, AreTakenFromTheEndOfAKey) {
  const auto key = split_appended("ev/0000000000001203");
  ASSERT_TRUE(key);
  EXPECT_EQ(key->prefix, "ev/");
  EXPECT_EQ(key->number, 1203U);
  EXPECT_FALSE(split_appended("ev/123"));
  EXPECT_FALSE(split_appended("ev/000000000000120x"));
  EXPECT_FALSE(split_appended("0000000000001203")) << "a prefix is not empty";
}

// The two bounds against their definition, for texts of every shape around a few numbers.
TEST(AppendNumbers, BoundsAreThoseOfTextOrder) {
  const std::string at = sixteen(5'000);
  std::vector<std::string> texts = {"", "0", "00", "9", "99", "/", ":", "\xC3\xA9", "0000x"};
  for (std::size_t cut = 0; cut <= at.size(); ++cut) {
    for (const char* tail : {"", "0", "5", "9", "/", ":", "x", "00", "99"}) {
      texts.push_back(at.substr(0, cut) + tail);
    }
  }
  for (const std::string& text : texts) {
    for (const std::uint64_t n : {0UL, 1UL, 4'999UL, 5'000UL, 5'001UL, 9'999UL, kNumbersEnd - 1}) {
      EXPECT_EQ(n >= first_not_before(text), sixteen(n) >= text) << text << ' ' << n;
      EXPECT_EQ(n >= first_after(text), sixteen(n) > text) << text << ' ' << n;
    }
  }
}

TEST(AppendNumbers, OfAScanAreThoseWithinItsPrefixAndBeyondItsKey) {
  const auto numbers = [](std::string prefix, std::string after, bool backwards) {
    const NumberRange range = numbers_of(
        {.prefix = std::move(prefix), .after = std::move(after), .backwards = backwards}, "ev/");
    return std::pair(range.low, range.high);
  };
  using Pair = std::pair<std::uint64_t, std::uint64_t>;
  EXPECT_EQ(numbers("ev/", "", false), Pair(0, kNumbersEnd));
  EXPECT_EQ(numbers("", "", true), Pair(0, kNumbersEnd));
  EXPECT_EQ(numbers("ev/", cat("ev/", sixteen(7)), false), Pair(8, kNumbersEnd));
  EXPECT_EQ(numbers("ev/", cat("ev/", sixteen(7)), true), Pair(0, 7));
  EXPECT_EQ(numbers("ev/", "a", false), Pair(0, kNumbersEnd));
  EXPECT_EQ(numbers("ev/", "a", true).second, 0U);
  EXPECT_GE(numbers("ev/", "f", false).first, kNumbersEnd);
  EXPECT_EQ(numbers("ev/", "f", true), Pair(0, kNumbersEnd));
  EXPECT_EQ(numbers("ev/00000000000000", "", false), Pair(0, 100));
}

}  // namespace
}  // namespace stint::store::etcd
