// The directory queue: plain files, one rename a step.
#include <array>
#include <filesystem>
#include <fstream>
#include <set>
#include <thread>

#include "tests/queue/dir_desk.h"

namespace stint::test {
namespace {

using core::ItemCause;
using core::ItemState;
using What = core::ItemOrder::What;

TEST_F(DirQueueTest, ItemsArePlainFiles) {
  const auto id = put("hello");
  EXPECT_EQ(read_text(cat(folder(), "/queue/", id.suffix(), ".e0")), "hello");
  const auto mine = claim("host-a:1");
  ASSERT_TRUE(mine);
  EXPECT_EQ(mine->item.payload, "hello");
  EXPECT_EQ(files(folder() + "/claimed/host-a_1"), 1U);
  EXPECT_TRUE(done(queue_.complete(completion(ref(*mine)))));
  EXPECT_EQ(read_text(cat(folder(), "/done/", id.suffix(), ".e1")), "hello");
  EXPECT_EQ(read_text(cat(folder(), "/staged/", id.suffix(), ".e1/result")), "ok");
  EXPECT_EQ(queue_.show(id).value()->result, "ok");
}

TEST_F(DirQueueTest, AFileThatIsMovedInByHandIsAdopted) {
  put("x");
  ASSERT_TRUE(claim());
  write_text(folder() + "/queue/todo.txt", "by hand");
  const auto mine = claim();
  ASSERT_TRUE(mine);
  EXPECT_EQ(mine->item.payload, "by hand");
  EXPECT_EQ(mine->item.item.epoch, Token(1));
  EXPECT_EQ(mine->item.labels, std::vector<std::string>{"file=todo.txt"});
}

// EVIDENCE-OF: G8 G10
TEST_F(DirQueueTest, AStaleEpochChangesNothing) {
  core::ItemLimits limits;
  limits.requeue = core::Requeue::Always;
  const auto id = put("x", limits);
  const auto zombie = claim("zombie", kBrief);
  ASSERT_TRUE(zombie);
  const auto mine = claim_when_free("ann");
  ASSERT_TRUE(mine);
  EXPECT_EQ(mine->item.item.reason, core::Reason::Expired);
  const api::ItemRef old = ref(*zombie);
  EXPECT_EQ(lost(queue_.start(old, true)), ItemCause::Superseded);
  // On record with the epoch that it came with, beside the one that counts.
  const api::Event& told = events_.all.back();
  EXPECT_EQ(told.kind, "item_refused_stale");
  EXPECT_EQ(told.token, old.epoch.number());
  EXPECT_EQ(told.owner, "ann");
  const std::vector<api::Event::Detail> details = {{"cause", "superseded"},
                                                   {"epoch", std::int64_t{2}}};
  EXPECT_EQ(told.details, details);
  EXPECT_EQ(lost(queue_.renew(old, kHour)), ItemCause::Superseded);
  EXPECT_EQ(lost(queue_.checkpoint(old, "m", "data")), ItemCause::Superseded);
  api::Completion fan = completion(old);
  fan.then.push_back({name(), "never"});
  EXPECT_EQ(lost(queue_.complete(fan)), ItemCause::Superseded);
  EXPECT_EQ(lost(queue_.fail(old, "w", {})), ItemCause::Superseded);
  EXPECT_EQ(lost(queue_.release(old)), ItemCause::Superseded);
  EXPECT_EQ(files(folder() + "/queue"), 0U);
  EXPECT_TRUE(done(queue_.complete(completion(ref(*mine)))));
  EXPECT_EQ(queue_.show(id).value()->item.epoch, Token(2));
}

TEST_F(DirQueueTest, ALateResultCountsUntilSomebodyClaims) {
  const auto id = put("x");
  const auto mine = claim("ann", kBrief);
  ASSERT_TRUE(mine);
  ASSERT_TRUE(done(queue_.start(ref(*mine), false)));
  ASSERT_TRUE(parks(id));
  EXPECT_EQ(queue_.show(id).value()->item.by, "janitor");
  EXPECT_EQ(lost(queue_.renew(ref(*mine), kHour)), ItemCause::Expired);
  EXPECT_TRUE(done(queue_.complete(completion(ref(*mine)))));
  EXPECT_EQ(state(id), ItemState::Done);
}

// EVIDENCE-OF: G10
TEST_F(DirQueueTest, FollowUpsComeAfterTheCompletionAndRollForward) {
  put("x");
  const auto mine = claim();
  ASSERT_TRUE(mine);
  ASSERT_TRUE(queue_.configure({name("next"), {}}));
  api::Completion fan = completion(ref(*mine));
  for (int i = 0; i < 3; ++i) fan.then.push_back({name("next"), cat("n", i)});
  ASSERT_TRUE(done(queue_.complete(fan)));
  EXPECT_TRUE(std::get<api::ItemDone>(*queue_.complete(fan)).repeated);
  EXPECT_EQ(lost(queue_.complete(completion(ref(*mine), "other"))), ItemCause::Spoken);
  EXPECT_EQ(queue_.count(name("next"))->waiting, 3U);
  const auto next = claim("ann", kHour, "next");
  ASSERT_TRUE(next);
  EXPECT_EQ(next->item.parent, mine->item.id.text());

  // Killed right after the rename that counts: the janitor goes on from there.
  const std::string stem = cat(mine->item.id.suffix(), ".e1");
  const std::string marker = cat(folder(), "/rolling/", stem);
  EXPECT_FALSE(std::filesystem::exists(marker)) << "nothing is left to be moved on";
  const auto leave_behind = [&](const std::string& suffix) {
    const std::string follow_up = cat(folder(), "/staged/", stem, "/then.", suffix, ".next");
    write_text(follow_up + ".put",
               read_text(cat(folder("next"), "/about/", next->item.id.suffix(), "/put")));
    write_text(follow_up, "left behind");
  };
  leave_behind("00000000000000000001");
  write_text(marker, "");
  ASSERT_TRUE(queue_.tend(name()));
  EXPECT_EQ(read_text(folder("next") + "/queue/00000000000000000001.e0"), "left behind");
  EXPECT_FALSE(std::filesystem::exists(marker));

  // Of before there were such markers.
  leave_behind("00000000000000000002");
  std::filesystem::remove_all(folder() + "/rolling");
  ASSERT_TRUE(queue_.tend(name()));
  EXPECT_EQ(read_text(folder("next") + "/queue/00000000000000000002.e0"), "left behind");
}

// Nobody need claim from the queue that it was completed in.
// EVIDENCE-OF: G10
TEST_F(DirQueueTest, AClaimMovesOnWhatOtherQueuesHaveCompletedForIt) {
  put("x");
  const auto mine = claim();
  ASSERT_TRUE(mine);
  ASSERT_TRUE(queue_.configure({name("next"), {}}));
  api::Completion fan = completion(ref(*mine));
  fan.then.push_back({name("next"), "follow-up"});
  ASSERT_TRUE(done(queue_.complete(fan)));
  // As it is left by one who was killed right after the rename that counts.
  const std::string stem = cat(mine->item.id.suffix(), ".e1");
  for (const auto& one : std::filesystem::directory_iterator(folder("next") + "/queue")) {
    const std::string suffix = one.path().stem().string();
    std::filesystem::rename(one.path(), cat(folder(), "/staged/", stem, "/then.", suffix, ".next"));
  }
  write_text(cat(folder(), "/rolling/", stem), "");
  queue::DirQueue other(dir_.path() + "/queues", nullptr, clock_, random_);
  const auto next = other.claim({.queue = name("next"),
                                 .owner = Owner::parse("bob").value(),
                                 .claim = Claim::make(random_),
                                 .ttl = kHour});
  ASSERT_TRUE(next);
  ASSERT_TRUE(std::holds_alternative<api::ClaimedItem>(*next)) << "nothing was there";
  EXPECT_EQ(std::get<api::ClaimedItem>(*next).item.payload, "follow-up");
}

TEST_F(DirQueueTest, AnswersSayWhereTheItemStandsNow) {
  const auto id = put("12345");
  const auto mine = claim();
  ASSERT_TRUE(mine);
  const auto failed = queue_.fail(ref(*mine), "no", kHour);
  ASSERT_TRUE(done(failed));
  const api::QueueItem& item = std::get<api::ItemDone>(*failed).item;
  EXPECT_EQ(item.payload_bytes, 5U);
  EXPECT_EQ(item.not_before, queue_.show(id).value()->not_before);
  const core::ItemOrder cancel{.what = What::Cancel,
                               .expected = {},
                               .why = "w",
                               .by = "op",
                               .id = "once",
                               .to = {},
                               .hold = {}};
  const auto cancelled = queue_.order(id, cancel);
  ASSERT_TRUE(done(cancelled));
  EXPECT_FALSE(std::get<api::ItemDone>(*cancelled).item.not_before);
  EXPECT_TRUE(queue_.show(id).value()->item.ended_at);
  ASSERT_TRUE(done(queue_.order(id, cancel)));
  const auto told = std::ranges::count(events_.all, "item_cancelled", &api::Event::kind);
  EXPECT_EQ(told, 1) << "a repeat is no second event";
}

TEST_F(DirQueueTest, WhatIsNoFileIsNotAdopted) {
  put("x");
  ASSERT_TRUE(claim());
  std::filesystem::create_directory(folder() + "/queue/a-folder");
  write_text(folder() + "/queue/.hidden", "x");
  EXPECT_FALSE(claim());
  EXPECT_TRUE(std::filesystem::exists(folder() + "/queue/a-folder"));
}

// A marker stays for as long as the completion may still count.
TEST_F(DirQueueTest, AMarkerOfWhatCameToNothingIsRemoved) {
  core::ItemLimits limits;
  limits.requeue = core::Requeue::Always;
  const auto id = put("x", limits);
  ASSERT_TRUE(claim("zombie", kBrief));
  const std::string marker = cat(folder(), "/rolling/", id.suffix(), ".e1");
  ASSERT_TRUE(queue_.tend(name()));
  write_text(marker, "");
  ASSERT_TRUE(queue_.tend(name()));
  EXPECT_TRUE(std::filesystem::exists(marker)) << "it is claimed, and may be completed";
  ASSERT_TRUE(wait_until([&] {
    EXPECT_TRUE(queue_.tend(name()));
    return queue_.count(name())->waiting == 1;
  }));
  ASSERT_TRUE(queue_.tend(name()));
  EXPECT_TRUE(std::filesystem::exists(marker)) << "the late word may still come";
  ASSERT_TRUE(claim());
  ASSERT_TRUE(queue_.tend(name()));
  EXPECT_FALSE(std::filesystem::exists(marker));
}

TEST_F(DirQueueTest, TheOperatorMovesTheEpoch) {
  const auto id = put("x");
  const auto mine = claim();
  ASSERT_TRUE(mine);
  core::ItemOrder order{
      .what = What::Cancel, .expected = {}, .why = "w", .by = "op", .id = {}, .to = {}, .hold = {}};
  EXPECT_EQ(lost(queue_.order(id, order)), ItemCause::Live);
  order.expected = Token(1);
  EXPECT_TRUE(done(queue_.order(id, order)));
  EXPECT_EQ(state(id), ItemState::Cancelled);
  EXPECT_EQ(lost(queue_.complete(completion(ref(*mine)))), ItemCause::Ordered);
  EXPECT_EQ(lost(queue_.complete(completion({id, Token(2)}))), ItemCause::NeverIssued);
  order.what = What::Replay;
  order.expected.reset();
  EXPECT_TRUE(done(queue_.order(id, order)));
  const auto again = claim("bob");
  ASSERT_TRUE(again);
  EXPECT_EQ(again->item.item.epoch, Token(4));
  EXPECT_EQ(again->item.item.attempts, 1U);
  order.what = What::Drop;
  order.expected = Token(4);
  EXPECT_TRUE(done(queue_.order(id, order)));
  EXPECT_FALSE(queue_.show(id).value());
}

TEST_F(DirQueueTest, FailuresBackOffAndUseUpAttempts) {
  core::ItemLimits limits;
  limits.max_attempts = 2;
  limits.backoff = Millis(50);
  const auto id = put("x", limits);
  auto mine = claim();
  ASSERT_TRUE(mine);
  EXPECT_TRUE(done(queue_.fail(ref(*mine), "one", {})));
  EXPECT_EQ(lost(queue_.complete(completion(ref(*mine)))), ItemCause::Spoken);
  mine = claim_when_free("ann");
  ASSERT_TRUE(mine);
  EXPECT_EQ(mine->item.item.attempts, 2U);
  EXPECT_TRUE(done(queue_.fail(ref(*mine), "two", {})));
  EXPECT_EQ(state(id), ItemState::Failed);
  EXPECT_EQ(queue_.show(id).value()->item.why, "two");
}

TEST_F(DirQueueTest, NoProgressEndsAClaimAndTheSuccessorGetsTheCheckpoint) {
  core::ItemLimits limits;
  limits.requeue = core::Requeue::Always;
  limits.progress_timeout = kBrief;
  put("x", limits);
  const auto wedged = claim("wedged");
  ASSERT_TRUE(wedged);
  ASSERT_TRUE(done(queue_.checkpoint(ref(*wedged), "p40", "page 40")));
  const auto next = claim_when_free("ann");
  ASSERT_TRUE(next);
  EXPECT_EQ(next->item.checkpoint, "page 40");
  EXPECT_EQ(next->item.item.progress, "p40");
  EXPECT_EQ(next->item.item.reason, core::Reason::Stalled);
}

TEST_F(DirQueueTest, OrdersAreToldUnderTheirNames) {
  const core::ItemId id = put("a");
  for (const auto& [what, kind] : kOrderEvents) {
    const auto done = queue_.order(
        id, {.what = what, .expected = {}, .why = "w", .by = "op", .id = {}, .to = {}, .hold = {}});
    ASSERT_EQ(lost(done), ItemCause::None) << kind;
    EXPECT_EQ(events_.all.back().kind, kind);
  }
}

TEST_F(DirQueueTest, NoTimeIsLongerThanAYear) {
  put("a");
  const auto claimed = claim();
  ASSERT_TRUE(claimed);
  const Millis ten_years = kHour * 24 * 3650;
  EXPECT_EQ(queue_.renew(ref(*claimed), ten_years).error().code, Code::Invalid);
  EXPECT_EQ(queue_.fail(ref(*claimed), "w", ten_years).error().code, Code::Invalid);
  const auto kept = queue_.order(claimed->item.id, {.what = What::Reassign,
                                                    .expected = claimed->item.item.epoch,
                                                    .why = "w",
                                                    .by = "op",
                                                    .id = {},
                                                    .to = Owner::parse("bob").value(),
                                                    .hold = ten_years});
  EXPECT_EQ(kept.error().code, Code::Invalid);
  EXPECT_EQ(state(claimed->item.id), ItemState::Claimed);
}

TEST_F(DirQueueTest, ManyThreadsGetEveryItemOnceUnderOneName) {
  constexpr int kItems = 24;
  for (int i = 0; i < kItems; ++i) put(cat(i));
  std::atomic<int> completed = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      while (auto next = claim("same")) {
        if (done(queue_.complete(completion(ref(*next))))) ++completed;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(completed, kItems);
  EXPECT_EQ(files(folder() + "/done"), static_cast<std::size_t>(kItems));
}

}  // namespace
}  // namespace stint::test
