// The directory queue: plain files, one rename a step.
#include "queue/dir_queue.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <set>
#include <thread>

#include "base/mutex.h"
#include "base/text.h"
#include "os/clock.h"
#include "os/pause.h"
#include "os/random.h"
#include "tests/support/process.h"

namespace stint::test {
namespace {

using core::ItemCause;
using core::ItemState;
using What = core::ItemOrder::What;
constexpr Millis kHour{3'600'000};
constexpr Millis kBrief{300};

class KeptEvents final : public api::Events {
 public:
  Result<std::vector<api::Event>> list(const api::EventQuery& /*query*/) override { return all; }
  Status record(const api::Event& event) override {
    const MutexLock lock(mutex_);  // many threads complete at once
    all.push_back(event);
    return {};
  }
  Status record_refusal(const api::Event& event, const std::string& /*target*/) override {
    return record(event);
  }
  Result<std::unique_ptr<Watch>> watch() override { return unavailable("not here"); }

  std::vector<api::Event> all;

 private:
  Mutex mutex_;
};

class DirQueueTest : public ::testing::Test {
 protected:
  core::QueueName name(std::string_view text = "jobs") {
    return core::QueueName::parse(text).value();
  }
  core::ItemId put(const std::string& payload, core::ItemLimits limits = {}) {
    auto put = queue_.put({.queue = name(),
                           .payload = payload,
                           .priority = 0,
                           .delay = {},
                           .unique = {},
                           .labels = {},
                           .by = "t",
                           .limits = limits,
                           .create = true});
    EXPECT_TRUE(put.has_value()) << (put ? "" : put.error().message);
    return put.value().id;
  }
  std::optional<api::ClaimedItem> claim(std::string_view who = "ann", Millis ttl = kHour,
                                        std::string_view from = "jobs") {
    auto answer = queue_.claim({.queue = name(from),
                                .owner = Owner::parse(who).value(),
                                .claim = Claim::make(random_),
                                .ttl = ttl});
    EXPECT_TRUE(answer.has_value()) << (answer ? "" : answer.error().message);
    if (!answer || std::holds_alternative<api::EmptyQueue>(*answer)) return std::nullopt;
    return std::get<api::ClaimedItem>(*answer);
  }
  std::optional<api::ClaimedItem> claim_when_free(std::string_view who) {
    std::optional<api::ClaimedItem> got;
    EXPECT_TRUE(wait_until([&] { return (got = claim(who)).has_value(); }, Millis(30'000)));
    return got;
  }
  static api::ItemRef ref(const api::ClaimedItem& claimed) {
    return {claimed.item.id, claimed.item.item.epoch};
  }
  static ItemCause lost(const Result<api::ItemAnswer>& answer) {
    EXPECT_TRUE(answer.has_value()) << (answer ? "" : answer.error().message);
    if (!answer) return ItemCause::NotYet;
    const auto* no = std::get_if<api::ItemLost>(&*answer);
    return no == nullptr ? ItemCause::None : no->cause;
  }
  static bool done(const Result<api::ItemAnswer>& answer) {
    return lost(answer) == ItemCause::None;
  }
  static api::Completion completion(const api::ItemRef& ref, std::string result = "ok") {
    return {.ref = ref, .result = std::move(result), .then = {}};
  }
  ItemState state(const core::ItemId& id) { return queue_.show(id).value().value().item.state; }
  std::string folder(std::string_view text = "jobs") { return cat(dir_.path(), "/queues/", text); }
  std::size_t files(const std::string& path) {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator(path)) ++count;
    return count;
  }

  static Code lost_error(const Result<api::ItemAnswer>& answer) {
    return answer.has_value() ? Code::Failed : answer.error().code;
  }
  // A completion whose follow-ups have not been moved on: their queue is away (as `away`).
  template <class Complete>
  void leave_behind(Complete complete) {
    const std::string next = folder("next");
    // The limits of the follow-ups are asked for first, and their folder is opened after the
    // rename.
    std::filesystem::create_directory(folder("away"));
    std::filesystem::rename(next + "/queue", folder("away") + "/queue");
    ASSERT_TRUE(complete());
    std::filesystem::rename(folder("away") + "/queue", next + "/queue");
    std::filesystem::remove(folder("away"));
    std::filesystem::rename(next, folder("away"));
  }
  // The one claim that stands.
  std::string claimed_file() {
    for (const auto& each : std::filesystem::recursive_directory_iterator(folder() + "/claimed")) {
      if (each.is_regular_file()) return each.path().string();
    }
    return {};
  }

  TempDir dir_;
  os::SystemClock clock_;
  os::SystemRandom random_;
  KeptEvents events_;
  queue::DirQueue queue_{dir_.path() + "/queues", &events_, clock_, random_};
};

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
  ASSERT_TRUE(wait_until([&] {
    EXPECT_TRUE(queue_.tend(name()));
    return state(id) == ItemState::Parked;
  }));
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
  const std::string stage = cat(folder(), "/staged/", mine->item.id.suffix(), ".e1");
  write_text(stage + "/then.00000000000000000001.next.put",
             read_text(cat(folder("next"), "/about/", next->item.id.suffix(), "/put")));
  write_text(stage + "/then.00000000000000000001.next", "left behind");
  ASSERT_TRUE(queue_.tend(name()));
  EXPECT_EQ(read_text(folder("next") + "/queue/00000000000000000001.e0"), "left behind");
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
  const std::pair<What, const char*> orders[] = {
      {What::Park, "item_parked"},         {What::Requeue, "item_requeued"},
      {What::Reassign, "item_reassigned"}, {What::Cancel, "item_cancelled"},
      {What::Replay, "item_replayed"},     {What::Cancel, "item_cancelled"},
      {What::Drop, "item_dropped"}};
  for (const auto& [what, kind] : orders) {
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

// Few descriptors left: the n-th look fails with EMFILE.
class FewDescriptors {
 public:
  explicit FewDescriptors(rlim_t left) {
    ::getrlimit(RLIMIT_NOFILE, &before_);
    rlimit few = before_;
    const int next = ::open("/", O_RDONLY | O_CLOEXEC);
    ::close(next);
    few.rlim_cur = static_cast<rlim_t>(next) + left;
    ::setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before_); }
  FewDescriptors(const FewDescriptors&) = delete;
  FewDescriptors& operator=(const FewDescriptors&) = delete;

 private:
  rlimit before_{};
};

bool is_fault(const Error& error) {
  return error.code == Code::Unavailable || error.code == Code::UnknownOutcome;
}

TEST_F(DirQueueTest, WhatCannotBeLookedAtIsNotCalledAbsent) {
  const core::ItemId waiting = put("a");
  for (rlim_t left = 0; left < 6; ++left) {
    SCOPED_TRACE(left);
    const FewDescriptors few(left);
    const auto claimed = queue_.claim({.queue = name(),
                                       .owner = Owner::parse("ann").value(),
                                       .claim = Claim::make(random_),
                                       .ttl = kHour});
    if (claimed) {
      EXPECT_TRUE(std::holds_alternative<api::ClaimedItem>(*claimed));
      break;
    }
    ASSERT_TRUE(is_fault(claimed.error())) << claimed.error().message;
    if (claimed.error().code == Code::UnknownOutcome) break;
    const auto shown = queue_.show(waiting);
    EXPECT_TRUE(shown ? shown->has_value() : is_fault(shown.error()));
    const auto counted = queue_.count(name());
    EXPECT_TRUE(counted ? counted->waiting == 1 : is_fault(counted.error()));
    const auto renewed = queue_.renew({waiting, Token(1)}, kHour);  // refused: it is not claimed
    EXPECT_TRUE(renewed ? lost(renewed) != ItemCause::NotThere : is_fault(renewed.error()));
    const auto known = queue_.queues();
    EXPECT_TRUE(known ? known->size() == 1 : is_fault(known.error()));
  }
}

// EVIDENCE-OF: G10
TEST_F(DirQueueTest, AUniqueKeyIsNotForgottenWhileItsItemCannotBeLookedAt) {
  const auto put_once = [&] {
    return queue_.put({.queue = name(),
                       .payload = "x",
                       .priority = 0,
                       .delay = {},
                       .unique = "key",
                       .labels = {},
                       .by = "t",
                       .limits = core::ItemLimits{},
                       .create = true});
  };
  const core::ItemId first = put_once().value().id;
  ASSERT_TRUE(claim());
  for (rlim_t left = 0; left < 6; ++left) {
    SCOPED_TRACE(left);
    const FewDescriptors few(left);
    const auto again = put_once();
    if (!again) {
      EXPECT_TRUE(is_fault(again.error())) << again.error().message;
    } else {
      EXPECT_EQ(again->id.text(), first.text());
    }
  }
  EXPECT_EQ(put_once().value().id.text(), first.text());
  EXPECT_EQ(queue_.count(name()).value().waiting, 0U);
  EXPECT_EQ(queue_.count(name()).value().claimed, 1U);
}

TEST_F(DirQueueTest, AStrayFileInAStageIsLeftAlone) {
  put("a");
  const auto claimed = claim();
  ASSERT_TRUE(claimed);
  ASSERT_TRUE(queue_.complete(completion(ref(*claimed))));
  const std::string stage =
      cat(folder(), "/staged/", claimed->item.id.suffix(), ".e", claimed->item.item.epoch.number());
  for (const char* stray : {"then.a", "then.", "then.a.put", "then..put"}) {
    std::ofstream(cat(stage, "/", stray)) << "x";
  }
  put("b");
  EXPECT_TRUE(queue_.tend(name()));
  EXPECT_TRUE(claim());
  EXPECT_TRUE(std::filesystem::exists(stage + "/then.a"));
}

TEST_F(DirQueueTest, AQueueThatCannotBeMadeSaysWhy) {
  std::ofstream(dir_.path() + "/queues") << "a file";
  const auto made = queue_.configure({name(), core::ItemLimits{}});
  ASSERT_FALSE(made);
  EXPECT_NE(made.error().message.find("Not a directory"), std::string::npos)
      << made.error().message;
  const auto listed = queue_.queues();
  ASSERT_FALSE(listed);
  EXPECT_NE(listed.error().message.find("Not a directory"), std::string::npos)
      << listed.error().message;
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

// Killed right after the rename that counts; then an operator moves the item on.
// EVIDENCE-OF: G10
TEST_F(DirQueueTest, AnOperatorsVerbLosesNoFollowUpOfACompletion) {
  const core::ItemOrder replay{
      .what = What::Replay, .expected = {}, .why = "w", .by = "op", .id = {}, .to = {}, .hold = {}};
  core::ItemOrder drop = replay;
  drop.what = What::Drop;
  ASSERT_TRUE(queue_.configure({name("next"), {}}));
  std::size_t waiting = 0;
  for (const core::ItemOrder& order : {replay, drop}) {
    const auto id = put("x");
    const auto mine = claim();
    ASSERT_TRUE(mine);
    api::Completion fan = completion(ref(*mine));
    fan.then.push_back({name("next"), "n"});
    leave_behind([&] { return done(queue_.complete(fan)); });
    EXPECT_EQ(lost_error(queue_.order(id, order)), Code::Unavailable)
        << "its follow-ups would be lost";
    EXPECT_EQ(state(id), ItemState::Done);
    std::filesystem::rename(folder("away"), folder("next"));
    EXPECT_TRUE(done(queue_.order(id, order)));
    EXPECT_EQ(queue_.count(name("next"))->waiting, ++waiting);
    if (order.what == What::Replay) {
      drop.expected.reset();
      EXPECT_TRUE(done(queue_.order(id, drop)));
    }
    EXPECT_EQ(files(folder() + "/staged"), 0U);
  }
}

// The janitor renames what it has seen: after a word of the worker's that name is gone.
// EVIDENCE-OF: G8
TEST_F(DirQueueTest, AJanitorThatLookedBeforeACheckpointComesTooLate) {
  const auto id = put("x");
  const auto mine = claim();
  ASSERT_TRUE(mine);
  std::string seen = claimed_file();
  for (const auto& verb : std::vector<std::function<bool()>>{
           [&] { return done(queue_.start(ref(*mine), true)); },
           [&] { return done(queue_.checkpoint(ref(*mine), "h", {})); },
           [&] { return done(queue_.renew(ref(*mine), kHour)); }}) {
    ASSERT_TRUE(verb());
    EXPECT_FALSE(std::filesystem::exists(seen));
    seen = claimed_file();
  }
  EXPECT_EQ(queue_.show(id).value()->item.owner.text(), "ann");
  EXPECT_TRUE(done(queue_.complete(completion(ref(*mine)))));
}

// Killed between what it wrote beside the claim and the rename: it has said nothing.
// EVIDENCE-OF: G8 G10
TEST_F(DirQueueTest, AWordWithoutItsRenameCountsForNothing) {
  core::ItemLimits limits;
  limits.max_attempts = 5;
  const auto id = put("x", limits);
  const auto mine = claim("ann", kBrief);
  ASSERT_TRUE(mine);
  ASSERT_TRUE(done(queue_.start(ref(*mine), false)));
  const std::string about = cat(folder(), "/about/", id.suffix());
  // A turn was taken, and then nothing more came of it.
  const auto take_turn = [&](int turn) {
    const std::string now = claimed_file();
    const std::string base = now.substr(0, now.find('-', now.rfind('.')));
    std::filesystem::rename(now, cat(base, "-", turn, "-feed"));
  };
  take_turn(2);
  write_text(about + "/e1.said.2", "why no\nword failed\n");
  write_text(about + "/e1.back.2", "why later\n");
  take_turn(3);
  const std::string stage = cat(folder(), "/staged/", id.suffix(), ".e1.3");
  std::filesystem::create_directory(stage);
  write_text(stage + "/digest", "another");
  write_text(stage + "/result", "another");
  EXPECT_EQ(queue_.show(id).value()->item.last, core::LastWord::Open);
  ASSERT_TRUE(wait_until([&] {
    EXPECT_TRUE(queue_.tend(name()));
    return state(id) == ItemState::Parked;
  }));
  EXPECT_EQ(queue_.show(id).value()->item.by, "janitor");
  EXPECT_EQ(queue_.show(id).value()->item.attempts, 1U);
  EXPECT_TRUE(done(queue_.complete(completion(ref(*mine)))));
  EXPECT_EQ(queue_.show(id).value()->result, "ok");
  EXPECT_TRUE(std::get<api::ItemDone>(*queue_.complete(completion(ref(*mine)))).repeated);
  EXPECT_FALSE(std::filesystem::exists(stage));
}

// Where no claim stands any more the first word is the epoch's, also of one who was killed with it:
// whoever comes with another brings it to its end, and is told so.
TEST_F(DirQueueTest, ALateWordThatWasLeftBehindIsBroughtToItsEnd) {
  const auto id = put("x");
  const auto mine = claim("ann", kBrief);
  ASSERT_TRUE(mine);
  ASSERT_TRUE(done(queue_.start(ref(*mine), false)));
  ASSERT_TRUE(wait_until([&] {
    EXPECT_TRUE(queue_.tend(name()));
    return state(id) == ItemState::Parked;
  }));
  const std::string stage = cat(folder(), "/staged/", id.suffix(), ".e1.late");
  std::filesystem::create_directory(stage);
  write_text(stage + "/digest", "first");
  write_text(stage + "/result", "first");
  EXPECT_EQ(lost(queue_.complete(completion(ref(*mine)))), ItemCause::Spoken);
  EXPECT_EQ(state(id), ItemState::Done);
  EXPECT_EQ(queue_.show(id).value()->result, "first");
}

// Eight at once with one epoch and eight results: one is accepted, and that one is shown.
// EVIDENCE-OF: G10
TEST_F(DirQueueTest, OfManyCompletionsAtOnceTheAcceptedOneIsShown) {
  ASSERT_TRUE(queue_.configure({name("next"), {}}));
  for (int round = 0; round < 5; ++round) {
    const auto id = put("x");
    const auto mine = claim();
    ASSERT_TRUE(mine);
    std::array<bool, 8> accepted{};
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < accepted.size(); ++i) {
      threads.emplace_back([&, i] {
        api::Completion fan = completion(ref(*mine), cat(i));
        fan.then.push_back({name("next"), cat(i)});
        accepted.at(i) = done(queue_.complete(fan));
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(std::ranges::count(accepted, true), 1);
    const std::string which = cat(std::ranges::find(accepted, true) - accepted.begin());
    EXPECT_EQ(queue_.show(id).value()->result, which);
    const auto next = claim("bob", kHour, "next");
    ASSERT_TRUE(next);
    EXPECT_EQ(next->item.payload, which);
    EXPECT_FALSE(claim("bob", kHour, "next"));
  }
}

// Named like an item of ours: from another queue's done/, or with a name that no item has.
TEST_F(DirQueueTest, AStrangersItemIsAdoptedAndBlocksNobody) {
  put("first");
  ASSERT_TRUE(claim());
  write_text(folder() + "/queue/00000000000000000001.e7", "from elsewhere");
  write_text(folder() + "/queue/!!!!!!!!!!!!!!!!!!!!.e0", "odd");
  put("ours");
  std::set<std::string> got;
  for (int i = 0; i < 3; ++i) {
    const auto mine = claim();
    ASSERT_TRUE(mine);
    EXPECT_EQ(mine->item.item.epoch, Token(1));
    got.insert(mine->item.payload.value());
    EXPECT_TRUE(done(queue_.complete(completion(ref(*mine)))));
  }
  EXPECT_EQ(got, (std::set<std::string>{"from elsewhere", "odd", "ours"}));
  EXPECT_FALSE(claim());
}

}  // namespace
}  // namespace stint::test
