#include "service/once_records.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "store/memory/memory_store.h"
#include "tests/conformance/stores.h"

namespace stint::service {
namespace {

class OnceRecords : public ::testing::Test {
 protected:
  static api::Once once(int number) { return {.key = cat("k", 1000 + number), .digest = "d"}; }
  KeptItem item(bool existed = false) {
    const auto queue = core::QueueName::parse("q").value();
    return {.digest = {},
            .at = clock_.wall(),
            .id = ids_.make(queue, 0, clock_.wall(), random_),
            .epoch = Token(7),
            .existed = existed};
  }
  void keep(int number) {
    ASSERT_TRUE(store_.commit({keep_item(once(number), item())}, store::Sync::Durable));
  }
  std::size_t count() {
    return store_
        .scan(
            {.prefix = std::string(kAnswerPrefix), .after = "", .limit = 1000, .backwards = false})
        .value()
        .entries.size();
  }

  testing::FakeClock clock_;
  SeededRandom random_{1};
  store::MemoryStore store_{clock_};
  core::ItemIds ids_;
};

TEST_F(OnceRecords, WhatWasDoneToAnItemIsKept) {
  for (const bool existed : {false, true}) {
    const KeptItem kept = item(existed);
    const api::Once key = once(existed ? 2 : 1);
    ASSERT_TRUE(store_.commit({keep_item(key, kept)}, store::Sync::Durable));
    const auto found = find_kept_item(store_, key).value();
    ASSERT_TRUE(found);
    EXPECT_EQ(found->id, kept.id);
    EXPECT_EQ(found->epoch, Token(7));
    EXPECT_EQ(found->existed, existed);
  }
}

// Of what is not one commit: whoever keeps its answer first, the others give that one too.
TEST_F(OnceRecords, TheFirstAnswerThatIsKeptStands) {
  OnceService answers(store_, clock_);
  for (const bool bound : {true, false}) {
    const api::Once key = once(bound ? 1 : 2);
    if (bound) {
      ASSERT_FALSE(answers.bind(key).value().before);
    }
    const auto first = answers.keep(key, R"({"done":1})");
    ASSERT_TRUE(first && !first->before) << first.error().message;
    clock_.advance(Millis(5));
    const auto second = answers.keep(key, R"({"done":0})");
    ASSERT_TRUE(second && second->before);
    EXPECT_EQ(second->body, R"({"done":1})");
    EXPECT_EQ(second->age, Millis(5));
    EXPECT_EQ(answers.find(key).value().body, R"({"done":1})");
    const auto other = answers.keep({.key = key.key, .digest = "e"}, "{}");
    ASSERT_FALSE(other.has_value());
    EXPECT_TRUE(api::is_once_mismatch(other.error()));
  }
}

// An order's words may be long, and longer as JSON: it is carried out under a key as without one.
TEST_F(OnceRecords, AnOrderOfTheLongestWordsIsKept) {
  constexpr std::size_t kLongest = 1024;
  KeptAnswer kept{.digest = "d", .at = clock_.wall(), .granted = {}, .held = api::Held{}};
  kept.held->lease.resource = std::string(ResourceName::kMaxBytes, 'r');
  kept.held->lease.owner = Owner::parse(std::string(Owner::kMaxBytes, 'o')).value();
  kept.held->lease.why = kept.held->lease.by = "short";
  const auto words = [&](int number) {
    const store::Step step = keep_answer(once(number), kept);
    EXPECT_TRUE(store_.commit({step}, store::Sync::Durable).has_value()) << step.value.size();
    const auto found = decode_kept(once(number), step.value);
    return found ? found->held->lease.why : found.error().message;
  };
  EXPECT_EQ(words(1), "short");
  kept.held->lease.why = kept.held->lease.by = std::string(kLongest, 'x');
  EXPECT_EQ(words(2), kept.held->lease.why);
  kept.held->lease.why = kept.held->lease.by = std::string(kLongest, '"');
  EXPECT_EQ(words(3), "");
}

// Of a version that kept them otherwise: that it was done is known, and what was told is not.
TEST_F(OnceRecords, ARecordOfAnotherFormIsNoAnswer) {
  keep(1);
  OnceService answers(store_, clock_);
  const auto found = answers.find(once(1)).value();
  EXPECT_TRUE(found.before);
  EXPECT_TRUE(found.done);
  EXPECT_TRUE(found.body.empty());
}

TEST_F(OnceRecords, OldOnesAreSweptAPageAtATime) {
  constexpr int kOld = 150;
  for (int i = 0; i < kOld; ++i) keep(i);
  clock_.advance(api::kOnceKept + Millis(1));
  for (int i = kOld; i < kOld + 10; ++i) keep(i);
  std::string after;
  for (const std::size_t left : {96U, 32U, 10U}) {
    after = sweep_once(store_, after).value();
    EXPECT_EQ(count(), left);
  }
  EXPECT_EQ(after, "");
}

}  // namespace
}  // namespace stint::service
