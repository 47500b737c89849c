#include "server/held_book.h"

#include <gtest/gtest.h>

namespace stint::server {
namespace {

MonoTime held_at(int ms) { return MonoTime{} + Millis(ms); }

TEST(HeldBook, CountsWhatStandsAndForgetsWhatRanOut) {
  HeldBook book;
  book.note("a", "k", held_at(100), held_at(0));
  book.note("b", "k", held_at(200), held_at(0));
  book.note("c", "other", held_at(200), held_at(0));
  EXPECT_EQ(book.count_with("k", {}, held_at(99)), 2U);
  EXPECT_EQ(book.count_with("k", {"b", "c", "d"}, held_at(99)), 4U);
  EXPECT_EQ(book.count_with("k", {}, held_at(100)), 1U);
  EXPECT_EQ(book.size(), 2U);
  EXPECT_EQ(book.count_with("k", {}, held_at(200)), 0U);
  EXPECT_EQ(book.size(), 0U);
}

TEST(HeldBook, ARenewalMovesTheEndAndAnotherGrantTheKey) {
  HeldBook book;
  book.note("a", "k", held_at(100), held_at(0));
  book.note("a", "k", held_at(300), held_at(50));
  EXPECT_EQ(book.count_with("k", {}, held_at(200)), 1U);
  book.note("a", "other", held_at(400), held_at(200));
  EXPECT_EQ(book.count_with("k", {}, held_at(200)), 0U);
  EXPECT_EQ(book.count_with("other", {}, held_at(200)), 1U);
  book.ended("a");
  book.ended("a");
  EXPECT_EQ(book.count_with("other", {}, held_at(200)), 0U);
}

TEST(HeldBook, WhatIsAskedForTakesAPlaceUntilItIsGivenUp) {
  HeldBook book;
  EXPECT_TRUE(book.reserve("k", {"a"}, 2, held_at(0)));
  EXPECT_TRUE(book.reserve("k", {"b"}, 2, held_at(0)));
  EXPECT_TRUE(book.reserve("k", {"b"}, 2, held_at(0)));  // the same twice is one place
  EXPECT_FALSE(book.reserve("k", {"c"}, 2, held_at(0)));
  EXPECT_TRUE(book.reserve("other", {"c"}, 2, held_at(0)));
  book.give_up("k", {"b"});
  EXPECT_FALSE(book.reserve("k", {"c"}, 2, held_at(0)));
  book.give_up("k", {"b"});
  book.note("a", "k", held_at(100), held_at(1));  // granted: still one place
  EXPECT_TRUE(book.reserve("k", {"c"}, 2, held_at(1)));
  book.give_up("k", {"a"});
  EXPECT_EQ(book.count_with("k", {}, held_at(1)), 2U);
  book.give_up("k", {"c"});
  EXPECT_EQ(book.count_with("k", {}, held_at(1)), 1U);
  book.give_up("k", {"c"});
  EXPECT_EQ(book.count_with("k", {}, held_at(100)), 0U);
}

TEST(HeldBook, ManyOwnersThatComeAndGoLeaveNothing) {
  HeldBook book;
  for (int i = 0; i < 10'000; ++i) {
    const std::string name = std::to_string(i);
    book.note("r" + name, "k" + name, held_at(i + 10), held_at(i));
    ASSERT_LE(book.size(), 10U);
  }
}

}  // namespace
}  // namespace stint::server
