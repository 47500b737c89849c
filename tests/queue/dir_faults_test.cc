// The directory queue where somebody was stopped half-way, came late, or cannot look.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <set>
#include <thread>

#include "os/pause.h"
#include "tests/queue/dir_desk.h"

namespace stint::test {
namespace {

using core::ItemCause;
using core::ItemState;
using What = core::ItemOrder::What;

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

// A claim of a large queue must not list it each time.
TEST_F(DirQueueTest, WhatALookHasFoundServesTheNextClaimsToo) {
  for (int i = 0; i < 100; ++i) put(cat(i));
  std::set<std::string> got;
  for (int i = 0; i < 100; ++i) {
    const auto mine = claim();
    ASSERT_TRUE(mine);
    got.insert(mine->item.payload.value());
    if (i != 50) continue;
    // What is put meanwhile with a higher priority comes first all the same.
    api::PutRequest urgent = put_request(name(), "urgent", {});
    urgent.priority = 9;
    ASSERT_TRUE(queue_.put(urgent));
    const auto next = claim();
    ASSERT_TRUE(next);
    EXPECT_EQ(next->item.payload, "urgent");
  }
  EXPECT_EQ(got.size(), 100U);
  EXPECT_FALSE(claim());
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
  ASSERT_TRUE(parks(id));
  EXPECT_EQ(queue_.show(id).value()->item.by, "janitor");
  EXPECT_EQ(queue_.show(id).value()->item.attempts, 1U);
  EXPECT_TRUE(done(queue_.complete(completion(ref(*mine)))));
  EXPECT_EQ(queue_.show(id).value()->result, "ok");
  EXPECT_TRUE(std::get<api::ItemDone>(*queue_.complete(completion(ref(*mine)))).repeated);
  EXPECT_FALSE(std::filesystem::exists(stage));
}

// Killed between the note by which it takes its epoch and the rename: that epoch is used up.
// EVIDENCE-OF: G8
TEST_F(DirQueueTest, AnOrderThatWasStoppedBeforeItsRenameIsInNobodysWay) {
  const auto id = put("x");
  const auto leave = [&](int epoch) {
    write_text(cat(folder(), "/about/", id.suffix(), "/e", epoch, ".order"),
               "what cancel\nby op\n");
  };
  leave(1);
  const auto mine = claim();
  ASSERT_TRUE(mine);
  EXPECT_EQ(mine->item.item.epoch, Token(2));
  leave(3);
  const core::ItemOrder park{.what = What::Park,
                             .expected = Token(2),
                             .why = "w",
                             .by = "op",
                             .id = {},
                             .to = {},
                             .hold = {}};
  EXPECT_TRUE(done(queue_.order(id, park)));
  EXPECT_EQ(queue_.show(id).value()->item.epoch, Token(4));
  EXPECT_EQ(state(id), ItemState::Parked);
}

// Where no claim stands any more the first word is the epoch's, also of one who was killed with it:
// whoever comes with another brings it to its end, and is told so.
TEST_F(DirQueueTest, ALateWordThatWasLeftBehindIsBroughtToItsEnd) {
  const auto id = put("x");
  const auto mine = claim("ann", kBrief);
  ASSERT_TRUE(mine);
  ASSERT_TRUE(done(queue_.start(ref(*mine), false)));
  ASSERT_TRUE(parks(id));
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
