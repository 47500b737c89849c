// The checker is checked: each law is broken once, and the object that states the laws names it,
// and only it. Then the whole simulation with one thing taken out: the laws see that too.
// EVIDENCE-OF: G1 G2 G3 G4 G5 G6 G7 G9 G10 G12
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "base/text.h"
#include "guard/file_guard.h"
#include "guard/git_guard.h"
#include "store/memory/memory_store.h"
#include "tests/sim/sim_site.h"
#include "tests/support/issuing_fences.h"

namespace stint::test {
namespace {

using core::Reason;
using core::Standing;
using Stand = SimLaws::Stand;

// A grant that stands until then.
Stand grant(std::uint64_t token, Nanos ends, Reason reason = Reason::First) {
  return {.token = Token(token),
          .owner = "w",
          .reason = reason,
          .standing = Standing::Granted,
          .version = token,
          .ends_earliest = ends,
          .ends_latest = ends};
}

struct LawBreak {
  int law;
  std::function<void(SimLaws&, Scheduler&)> play;
};

constexpr Nanos kSecond = std::chrono::seconds(1);

void sealed_and_granted(SimLaws& laws, std::uint64_t token) {
  laws.changed("r0", grant(token, 10 * kSecond, Reason::Released), Nanos(0));
  laws.sealed("f0", Token(token));
}

SimLaws::Landing landing(std::uint64_t token, std::uint64_t version) {
  return {.resource = "r0",
          .token = Token(token),
          .version = version,
          .body = cat("body ", version, ' ', token),
          .standing = Token()};
}

// Staged before the fence `standing` got its name.
SimLaws::Landing staged_first(std::uint64_t token, std::uint64_t version, std::uint64_t standing) {
  SimLaws::Landing out = landing(token, version);
  out.standing = Token(standing);
  out.staged_first = true;
  return out;
}

std::vector<LawBreak> store_breaks() {
  return {
      {1,
       [](SimLaws& laws, Scheduler&) {
         laws.changed("r0", grant(5, kSecond), Nanos(0));
         Stand again = grant(5, 9 * kSecond, Reason::Released);
         again.version = 6;
         laws.changed("r0", again, 2 * kSecond);
       }},
      {2,
       [](SimLaws& laws, Scheduler&) {
         laws.acquired("r0", Token(5));  // its commit was lost with the tail
         laws.changed("r0", grant(4, kSecond), Nanos(0));
       }},
      {3,
       [](SimLaws& laws, Scheduler&) {
         laws.changed("r0", grant(1, 5 * kSecond), Nanos(0));
         laws.changed("r0", grant(2, 9 * kSecond, Reason::Released), kSecond);
       }},
      {5,
       [](SimLaws& laws, Scheduler&) {
         laws.changed("r0", grant(1, kSecond), Nanos(0));
         laws.changed(
             "r0",
             [] {
               Stand late = grant(1, 9 * kSecond);
               return std::optional(late);
             }(),
             2 * kSecond);
       }},
      {6,
       [](SimLaws& laws, Scheduler& world) {
         laws.changed("r0", grant(1, 5 * kSecond), Nanos(0));
         laws.released("r0", Token(1));
         world.interleave(kSecond);
         laws.refused("r0", Token(1), world.now());
       }},
  };
}

std::vector<LawBreak> target_breaks() {
  return {
      {7,
       [](SimLaws& laws, Scheduler&) {
         laws.sealed("f0", Token(3));
         laws.seal_told("f0", Token(3));
         laws.came_back("f0", Token(2), 0);
       }},
      {8,
       [](SimLaws& laws, Scheduler&) {
         sealed_and_granted(laws, 1);
         laws.sealed("f0", Token(2));
         laws.landed("f0", landing(1, 1));
       }},
      {9,
       [](SimLaws& laws, Scheduler&) {
         sealed_and_granted(laws, 1);
         laws.landed("f0", landing(1, 1));
         laws.landed("f0", landing(1, 3));
       }},
      {10,
       [](SimLaws& laws, Scheduler&) {
         laws.sealed("f0", Token(7));
         laws.landed("f0", landing(7, 1));
       }},
      {11,
       [](SimLaws& laws, Scheduler&) {
         laws.completed("item", "epoch 1");
         laws.completed("item", "epoch 2");
       }},
      {12, [](SimLaws& laws, Scheduler&) { laws.write_told("f0", "body", 1); }},
      {13,
       [](SimLaws& laws, Scheduler&) {
         sealed_and_granted(laws, 1);
         laws.write_refused("f0", landing(1, 1).body);
         laws.landed("f0", landing(1, 1));
       }},
      {13,
       [](SimLaws& laws, Scheduler& world) {
         const Nanos now = world.now().time_since_epoch();
         laws.changed("r0", grant(1, now + kSecond), now);
         laws.told_lost("r0", Token(1));
       }},
      {10, [](SimLaws& laws, Scheduler&) { laws.told_held("r0", Token(1)); }},
      {14,
       [](SimLaws& laws, Scheduler&) {
         sealed_and_granted(laws, 1);
         laws.fenced("f0", Token(1));
         laws.landed("f0", landing(1, 1));
       }},
      {15,
       [](SimLaws& laws, Scheduler&) {
         sealed_and_granted(laws, 1);
         SimLaws::Landing over = landing(1, 1);
         over.standing = Token(2);
         laws.landed("f0", over);
       }},
      {15, [](SimLaws& laws, Scheduler&) { laws.seen("f0", "half"); }},
      {8,
       [](SimLaws& laws, Scheduler&) {
         sealed_and_granted(laws, 1);
         laws.sealed("f0", Token(2));
         laws.seal_told("f0", Token(2));
         laws.landed("f0", staged_first(1, 1, 2));
       }},
      {8,
       [](SimLaws& laws, Scheduler&) {
         sealed_and_granted(laws, 1);
         laws.changed("r0", grant(2, 99 * kSecond, Reason::Expired), 11 * kSecond);
         laws.sealed("f0", Token(2));
         laws.landed("f0", landing(2, 1));
         laws.landed("f0", staged_first(1, 2, 2));
       }},
  };
}

std::vector<LawBreak> other_breaks() {
  return {
      {16,
       [](SimLaws& laws, Scheduler&) {
         laws.slot_started("job 1", 1);
         laws.slot_started("job 1", 1);
       }},
      {16, [](SimLaws& laws, Scheduler&) { laws.slot_counted("job 2", 0); }},
      {17, [](SimLaws& laws, Scheduler&) { laws.got_on(false, "r0"); }},
      {18,
       [](SimLaws& laws, Scheduler&) {
         laws.changed("r0", grant(1, kSecond), Nanos(0));
         laws.works("w0/child", "r0", Token(1));
         laws.changed("r0", grant(2, 9 * kSecond, Reason::Expired), 2 * kSecond);
       }},
      {18,
       [](SimLaws& laws, Scheduler& world) {
         const Nanos now = world.now().time_since_epoch();
         laws.changed("r0", grant(1, now + kSecond), now);
         laws.trusts("w0", "r0", Token(1), world.now() + 2 * kSecond);
         laws.check_time();
       }},
  };
}

// What the laws say of it, the numbers alone.
std::vector<int> named(const LawBreak& one) {
  Scheduler world(1);
  SimClock& clock = world.make_clock();
  store::MemoryStore truth(clock);
  SimLaws laws(world, truth, clock);
  one.play(laws, world);
  std::vector<int> out;
  for (const std::string& problem : world.problems()) out.push_back(std::stoi(problem));
  return out;
}

TEST(SimLaws, NamesExactlyTheLawThatWasBroken) {
  for (const auto& breaks : {store_breaks(), target_breaks(), other_breaks()}) {
    for (const LawBreak& one : breaks) {
      EXPECT_EQ(named(one), std::vector<int>{one.law}) << law_name(one.law);
    }
  }
}

// A grant that came too early is a second grant beside the first as well: two laws see it.
TEST(SimLaws, NamesAnEarlyExpiry) {
  const LawBreak early{4, [](SimLaws& laws, Scheduler&) {
                         laws.changed("r0", grant(1, 5 * kSecond), Nanos(0));
                         laws.changed("r0", grant(2, 9 * kSecond, Reason::Expired), kSecond);
                       }};
  EXPECT_EQ(named(early), (std::vector<int>{3, 4}));
}

TEST(SimLaws, SaysNothingOfWhatIsRight) {
  const LawBreak fine{0, [](SimLaws& laws, Scheduler& world) {
                        sealed_and_granted(laws, 1);
                        laws.landed("f0", landing(1, 1));
                        laws.write_told("f0", landing(1, 1).body, 1);
                        laws.sealed("f0", Token(2));  // and told to nobody yet
                        laws.landed("f0", staged_first(1, 2, 2));
                        laws.seen("f0", landing(1, 2).body);
                        laws.came_back("f0", Token(2), 2);
                        laws.changed("r0", grant(2, 99 * kSecond, Reason::Expired), 11 * kSecond);
                        laws.refused("r0", Token(2), world.now());
                        laws.completed("item", "epoch 1");
                        laws.slot_counted("job 1", 1);
                      }};
  EXPECT_EQ(named(fine), std::vector<int>{});
}

// ---- the whole site, with one thing taken out

// Whether one of the laws is seen broken within so many seeds.
bool sees(const SimOptions& options, const std::set<int>& laws, std::uint64_t seeds) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    for (const std::string& problem : play(make_plan(seed), options).problems) {
      if (laws.contains(std::stoi(problem))) return true;
    }
  }
  return false;
}

TEST(SimSite, SeesAStoreThatIgnoresTimers) {
  EXPECT_TRUE(sees({.sabotage = Sabotage::IgnoreTimers}, {3, 4, 5, 18}, 60));
}

TEST(SimSite, SeesAStoreThatIgnoresVersions) {
  EXPECT_TRUE(sees({.sabotage = Sabotage::IgnoreVersions}, {1, 3}, 60));
}

TEST(SimSite, SeesADiskThatLiesAboutSyncs) { EXPECT_TRUE(sees({.lying_disk = true}, {7, 12}, 60)); }

// The same where what is edited under the first lease is of that kind.
bool sees_at(SimKind kind, const SimOptions& options, const std::set<int>& laws,
             std::uint64_t seeds) {
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    SimPlan plan = make_plan(seed);
    const bool kept = plan.scene == SimScene::Everything || plan.scene == SimScene::Leases;
    if (kind == SimKind::Text && !kept) continue;
    plan.kinds = {kind, kind == SimKind::Tree ? SimKind::File : SimKind::Tree};
    for (const std::string& problem : play(plan, options).problems) {
      const bool there = problem.find("at 'f0'") != problem.npos;
      if (there && laws.contains(std::stoi(problem))) return true;
    }
  }
  return false;
}

// STINT_GUARD=warn: the guards write what they would refuse.
TEST(SimSite, SeesGuardsThatLetEverythingPass) {
  for (const SimKind kind :
       {SimKind::File, SimKind::Tree, SimKind::Row, SimKind::Text, SimKind::Branch}) {
    EXPECT_TRUE(sees_at(kind, {.warn = true}, {8}, 120)) << static_cast<int>(kind);
  }
}

// The classic lost update: a write between the new holder's read and its write. (A git push seals
// by itself, and follows what it was made from.)
TEST(SimSite, SeesHoldersThatDoNotSealBeforeTheyRead) {
  for (const SimKind kind : {SimKind::File, SimKind::Tree, SimKind::Row, SimKind::Text}) {
    EXPECT_TRUE(sees_at(kind, {.without_seal = true}, {9}, 120)) << static_cast<int>(kind);
  }
}

// The application may still be at what got no answer.
TEST(SimSite, SeesProxiesThatDoNotWait) {
  EXPECT_TRUE(sees_at(SimKind::Text, {.hasty = true}, {8}, 200));
}

TEST(SimSite, SeesAGitServerThatComparesNothing) {
  EXPECT_TRUE(sees_at(SimKind::Branch, {.blind_git = true}, {8, 9}, 200));
}

TEST(SimSite, RepeatsARunBitByBit) {
  for (const std::uint64_t seed : {1U, 3U, 4U}) {
    const SimOutcome first = play(make_plan(seed), {.keep_trace = true});
    const SimOutcome second = play(make_plan(seed), {.keep_trace = true});
    EXPECT_EQ(first.trace, second.trace);
    EXPECT_EQ(first.fingerprint, second.fingerprint);
    EXPECT_NE(first.fingerprint, play(make_plan(seed + 5), {}).fingerprint);
  }
}

// The mark of a write in mode once got its name, and the disk said EIO: the repeat finishes the
// write instead of taking it for done.   G5
TEST(SimDiskPlay, AMarkThatWasMadeAndCalledFailedIsFinishedByTheRepeat) {
  Scheduler world(1);
  SimOs os(world);
  SimTally tally;
  SimDisk disk(world, tally);
  IssuingFences fences;
  fences.issue(1);
  SimHost& host = world.make_machine("h", world.make_clock());
  bool ended = false;
  world.start_once(
      host, "writer",
      [&] {
        guard::Pass pass = pass_with(1);
        pass.mode = core::FenceMode::Once;
        const guard::FileWrite write{.path = "/site/f0", .body = "new"};
        disk.betray(".used.");
        EXPECT_FALSE(guard::write_file(write, pass, &fences));
        EXPECT_FALSE(disk.peek("f0"));
        EXPECT_TRUE(guard::write_file(write, pass, &fences));
        EXPECT_EQ(disk.peek("f0"), "new");
        ended = true;
      },
      [] {});
  world.run({.steps = 10'000});
  EXPECT_TRUE(ended);
}

// The server died between branch and fence of a write in mode once, and the answer to the push that
// was to find out was lost too: the use is in the fence all the same, and a second write is
// refused. G5
TEST(SimGitPlay, AWriteOfModeOnceWhoseAnswersWereLostIsUsed) {
  Scheduler world(1);
  SimOs os(world);
  SimTally tally;
  SimDisk disk(world, tally);
  SimHost& host = world.make_machine("h", world.make_clock());
  SimGit git(world, tally, host);
  git.set_troubles({.lose = 0, .slow = 0, .late = 0, .locked = 0, .refused = 0, .cut = 0});
  IssuingFences fences;
  fences.issue(1);
  const auto branch = make_branch(world, git, "f0");
  bool ended = false;
  world.start_once(
      host, "writer",
      [&] {
        const auto write = [&](const guard::Pass& pass, const std::string& body) {
          EXPECT_TRUE(branch->read());
          return branch->write(pass, body, fences);
        };
        guard::Pass pass = pass_with(1);
        pass.claim = Claim::make(world.random());
        EXPECT_TRUE(guard::seal_git(branch->words(), {.pass = pass, .adopt = {}}, &fences));
        const auto first = write(pass, "1");  // the branch is there from now on
        EXPECT_TRUE(first && std::holds_alternative<guard::Written>(*first));
        pass.mode = core::FenceMode::Once;
        pass.key = "key";
        git.betray(1);
        const auto second = write(pass, "2");
        EXPECT_TRUE(second && std::holds_alternative<guard::Written>(*second));
        const auto third = write(pass, "3");
        EXPECT_TRUE(third && std::holds_alternative<guard::Refused>(*third));
        EXPECT_EQ(git.text_at("refs/heads/f0"), "2");
        ended = true;
      },
      [] {});
  world.run({.steps = 10'000});
  EXPECT_TRUE(ended);
}

TEST(SimPlan, IsReadBackAsItWasPrinted) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const SimPlan plan = make_plan(seed);
    const auto again = read_plan(seed, plan.text());
    ASSERT_TRUE(again);
    EXPECT_EQ(again->text(), plan.text());
  }
  EXPECT_FALSE(read_plan(1, "someday pause w0"));
  const SimPlan plan = make_plan(3);
  EXPECT_EQ(play(plan, {}).fingerprint, play(*read_plan(3, plan.text()), {}).fingerprint);
}

}  // namespace
}  // namespace stint::test
