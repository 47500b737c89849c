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
  // Fifty follow-ups, into so many queues.
  std::vector<core::ItemId> fifty(int queues) {
    std::vector<core::ItemId> out;
    for (int i = 0; i < 50; ++i) {
      const std::string name = cat(std::string(97, 'q'), 100 + i % queues);
      out.push_back(ids_.make(core::QueueName::parse(name).value(), 0, clock_.wall(), random_));
    }
    return out;
  }
  void keep(int number, std::vector<core::ItemId> follow_ups) {
    const KeptItem kept{.digest = {},
                        .at = clock_.wall(),
                        .id = fifty(1).front(),
                        .epoch = Token(7),
                        .follow_ups = std::move(follow_ups)};
    ASSERT_TRUE(store_.commit({keep_item(once(number), kept)}, store::Sync::Durable));
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

TEST_F(OnceRecords, FollowUpsIntoAQueueOfALongNameAreKept) {
  const auto follow_ups = fifty(3);
  keep(1, follow_ups);
  const auto found = find_kept_item(store_, once(1)).value();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->follow_ups, follow_ups);
  EXPECT_EQ(found->epoch, Token(7));
}

TEST_F(OnceRecords, FollowUpsWithoutRoomAreUnknownNotNone) {
  keep(1, fifty(50));
  const auto found = find_kept_item(store_, once(1));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::UnknownOutcome);
  keep(2, {});
  EXPECT_TRUE(find_kept_item(store_, once(2)).value()->follow_ups.empty());
}

TEST_F(OnceRecords, OldOnesAreSweptAPageAtATime) {
  constexpr int kOld = 150;
  for (int i = 0; i < kOld; ++i) keep(i, {});
  clock_.advance(api::kOnceKept + Millis(1));
  for (int i = kOld; i < kOld + 10; ++i) keep(i, {});
  std::string after;
  for (const std::size_t left : {96U, 32U, 10U}) {
    after = sweep_once(store_, after).value();
    EXPECT_EQ(count(), left);
  }
  EXPECT_EQ(after, "");
}

}  // namespace
}  // namespace stint::service
