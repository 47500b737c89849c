#include "store/append_key.h"

#include <gtest/gtest.h>

namespace stint::store {
namespace {

TEST(AppendKey, SortsByNumber) {
  EXPECT_EQ(append_key("ev/", 7), "ev/0000000000000007");
  EXPECT_LT(append_key("ev/", 9), append_key("ev/", 10));
  EXPECT_LT(append_key("ev/", 999'999), append_key("ev/", 1'000'000));
}

TEST(AppendKey, GivesItsNumberBackAndNoneForAnythingElse) {
  EXPECT_EQ(append_number("ev/", append_key("ev/", 12'345)), 12'345U);
  for (const char* other : {"", "ev/", "ev/7", "xx/0000000000000007", "ev/000000000000000x",
                            "ev/00000000000000007", "ev/-000000000000007"}) {
    EXPECT_EQ(append_number("ev/", other), 0U) << other;
  }
}

}  // namespace
}  // namespace stint::store
