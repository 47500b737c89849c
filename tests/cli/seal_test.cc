// seal, run --seal, transfer and revoke with sealed targets, guard check: as a shell sees them.
#include <gtest/gtest.h>

#include <filesystem>

#include "app/opened.h"
#include "base/text.h"
#include "os/clock.h"
#include "os/random.h"
#include "tests/cli/stint.h"

namespace stint::test {
namespace {

// Remembers a target that this program cannot reach, as a newer version would.
void remember(const Stint& stint, const std::string& resource, const std::string& target) {
  os::SystemClock clock;
  os::SystemRandom random;
  const auto opened =
      app::Opened::open({.url = app::parse_store_url(cat("sqlite:", stint.database())).value(),
                         .state_directory = "",
                         .may_create = false},
                        clock, random)
          .value();
  const auto name = ResourceName::parse(resource).value();
  const core::Offer offer{.generation = opened->leases().generation(),
                          .resource = resource,
                          .token = opened->leases().get(name).value().token,
                          .mode = core::FenceMode::AtLeast,
                          .key = "",
                          .digest = "",
                          .by_order = true};
  EXPECT_EQ(opened->fences().remember(offer, {target}).value(), core::Verdict::Admitted);
}

std::string fence(const Stint& stint, const std::string& target) {
  return stint({"guard", "check", target}).out;
}

TEST(Seal, InsideARunNeedsNothingButTheTarget) {
  const Stint stint;
  const Finished run = stint({"run", "r", "--", stint.binary(), "seal", "admit:x"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.err.find("sealed 'admit:x'"), std::string::npos) << run.err;
  EXPECT_NE(fence(stint, "admit:x").find("token 1 of 'r'"), std::string::npos);
}

TEST(Seal, RefusesWhatIsNotTheNewestTokenAndLeavesAnEvent) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "r", "--owner", "ann"}).out, "1\n");
  ASSERT_EQ(stint({"acquire", "r", "--retake"}).out, "2\n");
  ASSERT_EQ(stint({"seal", "admit:x", "--resource", "r", "--token", "2"}).exit_code, 0);
  for (int i = 0; i < 3; ++i) {
    const Finished stale = stint({"seal", "admit:x", "--resource", "r", "--token", "1"});
    EXPECT_EQ(stale.exit_code, 13);
    EXPECT_NE(stale.err.find("acquire the lease anew"), std::string::npos) << stale.err;
    EXPECT_EQ(stale.err.find("force"), std::string::npos) << stale.err;
  }
  EXPECT_EQ(stint.events({"write_refused", "admit:x", "\"token\":1"}), 1) << "one a minute";
  EXPECT_EQ(stint({"seal", "admit:x", "--resource", "r", "--token", "9"}).exit_code, 13);
  EXPECT_EQ(stint({"seal", "admit:x", "--resource", "r"}).exit_code, 13) << "no token";
  EXPECT_EQ(stint({"seal", "admit:x"}).exit_code, 2) << "which resource?";
  const Finished json = stint({"seal", "admit:x", "--resource", "r", "--token", "1", "--json"});
  EXPECT_EQ(json_field(json.err, "code"), "stale") << json.err;
}

TEST(Seal, WrongWordsAreUsageErrorsAndRememberNothing) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "r"}).exit_code, 0);
  for (const char* bad : {"x", "file:", "file:../x", "proxy:", "postgres://u:pw@h/d#r"}) {
    const Finished said = stint({"seal", bad, "--resource", "r", "--token", "1"});
    EXPECT_EQ(said.exit_code, 2) << bad << said.err;
    EXPECT_EQ(said.err.find("pw"), std::string::npos) << said.err;
  }
  EXPECT_EQ(stint({"seal", "admit:x", "--adopt"}).exit_code, 2) << "no --why";
  EXPECT_EQ(stint({"seal", "admit:x", "--why", "w"}).exit_code, 2);
  const Finished revoked = stint({"revoke", "r", "--token", "1", "--why", "w", "--json"});
  EXPECT_EQ(revoked.out.find("sealed"), std::string::npos) << revoked.out;
}

TEST(Seal, AnUnsafeModeForWritesDoesNotWeakenIt) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "r"}).exit_code, 0);
  ASSERT_EQ(stint({"acquire", "r", "--retake"}).exit_code, 0);
  Command warn = stint.command({"seal", "admit:x", "--resource", "r", "--token", "1"});
  warn.env.emplace_back("STINT_GUARD", "warn");
  EXPECT_EQ(run(warn).exit_code, 13);
  warn.env.emplace_back("STINT_GUARD", "maybe");
  EXPECT_EQ(run(warn).exit_code, 2);
}

// EVIDENCE-OF: G5
TEST(RunSeal, SealsBeforeTheCommandAndAgainInLaterRuns) {
  const Stint stint;
  const Finished first = stint({"run", "r", "--seal", "admit:x", "--seal", "admit:y", "--",
                                stint.binary(), "guard", "check", "admit:x"});
  EXPECT_EQ(first.exit_code, 0) << first.err;
  EXPECT_NE(first.out.find("token 1"), std::string::npos) << first.out;
  const Finished later = stint({"run", "r", "--", stint.binary(), "guard", "check", "admit:y"});
  EXPECT_NE(later.out.find("token 2"), std::string::npos) << later.out << later.err;
  const Finished told = stint({"run", "r", "--no-seal", "--", "true"});
  EXPECT_EQ(told.exit_code, 0);
  EXPECT_NE(fence(stint, "admit:y").find("token 2"), std::string::npos) << "not sealed with 3";
}

TEST(RunSeal, TakesTargetsFromTheConfiguration) {
  const Stint stint;
  std::filesystem::create_directories(stint.dir().file("config/stint"));
  write_text(stint.dir().file("config/stint/config.toml"), "[seal]\nr = [\"admit:c\"]\n");
  Command command = stint.command({"run", "r", "--", "true"});
  command.env.emplace_back("XDG_CONFIG_HOME", stint.dir().file("config"));
  EXPECT_EQ(run(command).exit_code, 0);
  EXPECT_NE(fence(stint, "admit:c").find("token 1"), std::string::npos);
  write_text(stint.dir().file("config/stint/config.toml"), "[seal]\nr = \"admit:c\"\n");
  EXPECT_EQ(run(command).exit_code, 2);
}

TEST(RunSeal, UnknownTargetsAreRefusedBeforeAnythingIsAcquired) {
  const Stint stint;
  const Finished run = stint({"run", "r", "--seal", "mysql://h/db", "--", "true"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_NE(run.err.find("is not known"), std::string::npos);
  EXPECT_EQ(stint.lease("r", "token"), "0");
}

TEST(RunSeal, ARefusalIs13AndATargetThatIsNotReached69AndNothingIsStarted) {
  const Stint stint;
  const std::string mark = stint.dir().file("mark");
  ASSERT_EQ(stint({"run", "other", "--seal", "admit:x", "--", "true"}).exit_code, 0);
  const Finished refused = stint({"run", "r", "--seal", "admit:x", "--", "touch", mark});
  EXPECT_EQ(refused.exit_code, 13) << refused.err;
  EXPECT_NE(refused.err.find("'other'"), std::string::npos) << refused.err;
  EXPECT_NE(refused.err.find("not started"), std::string::npos) << refused.err;
  EXPECT_FALSE(stint.held("r")) << "released";
  EXPECT_EQ(stint.events({"write_refused", "foreign"}), 1);
  EXPECT_NE(refused.err.find("no longer remembered"), std::string::npos) << refused.err;
  EXPECT_FALSE(std::filesystem::exists(mark));
  EXPECT_EQ(stint({"run", "r", "--", "true"}).exit_code, 0) << "what refused is not a duty";
  remember(stint, "r", "proxy:http://h/");
  const Finished away = stint({"run", "r", "--", "touch", mark});
  EXPECT_EQ(away.exit_code, 69) << away.err;
  EXPECT_FALSE(std::filesystem::exists(mark));
  EXPECT_FALSE(stint.held("r"));
  const Finished forgotten =
      stint({"seal", "proxy:http://h/", "--resource", "r", "--forget", "--why", "wrong target"});
  EXPECT_EQ(forgotten.exit_code, 0) << forgotten.err;
  EXPECT_EQ(stint.events({"target_forgotten", "wrong target"}), 1);
  EXPECT_EQ(stint({"run", "r", "--", "true"}).exit_code, 0);
}

TEST(Seal, ATargetThatRefusesIsNotRemembered) {
  const Stint stint;
  ASSERT_EQ(stint({"run", "other", "--seal", "admit:x", "--", "true"}).exit_code, 0);
  const Finished refused = stint({"run", "r", "--", stint.binary(), "seal", "admit:x"});
  EXPECT_EQ(refused.exit_code, 13) << refused.err;
  const Finished next = stint({"run", "r", "-v", "--", "true"});
  EXPECT_EQ(next.exit_code, 0) << next.err;
  EXPECT_EQ(next.err.find("admit:x"), std::string::npos) << next.err;
}

// A run that was killed between the grant and the answer of its first seal, or after its seal and
// before it said so: nobody knows which. G5
TEST(RunSeal, WhatAnotherWasAboutToSealAndRefusesStaysADuty) {
  const Stint stint;
  ASSERT_EQ(stint({"run", "other", "--seal", "admit:x", "--", "true"}).exit_code, 0);
  ASSERT_EQ(stint({"run", "r", "--", "true"}).exit_code, 0);
  remember(stint, "r", "admit:x");
  remember(stint, "r", "admit:y");
  for (int i = 0; i < 2; ++i) {
    const Finished next = stint({"run", "r", "--", "true"});
    EXPECT_EQ(next.exit_code, 13) << next.err;
    EXPECT_NE(next.err.find("sealing 'admit:x'"), std::string::npos) << next.err;
    EXPECT_NE(next.err.find("may forget it"), std::string::npos) << next.err;
    // No recipe that would break another's protection.
    EXPECT_EQ(next.err.find("--forget"), std::string::npos) << next.err;
    EXPECT_EQ(next.err.find(".."), std::string::npos) << next.err;
  }
  // Nor does an order forget it.
  const Finished revoked = stint({"revoke", "r", "--token", "3", "--why", "w"});
  EXPECT_EQ(revoked.exit_code, 1) << revoked.err;
  EXPECT_EQ(stint({"run", "r", "--", "true"}).exit_code, 13);
  ASSERT_EQ(
      stint({"seal", "admit:x", "--resource", "r", "--forget", "--why", "not ours"}).exit_code, 0);
  EXPECT_EQ(stint({"run", "r", "--", "true"}).exit_code, 0);
  EXPECT_NE(fence(stint, "admit:y").find("of 'r'"), std::string::npos);
}

TEST(Seal, AnAdoptionTakesAFenceFromAnotherResource) {
  const Stint stint;
  ASSERT_EQ(stint({"run", "other", "--seal", "admit:x", "--", "true"}).exit_code, 0);
  const Finished moved =
      stint({"run", "r", "--", stint.binary(), "seal", "admit:x", "--adopt", "--why", "w"});
  EXPECT_EQ(moved.exit_code, 0) << moved.err;
  const Finished next = stint({"run", "r", "--", "true"});
  EXPECT_EQ(next.exit_code, 0) << next.err;
  EXPECT_NE(fence(stint, "admit:x").find("token 2 of 'r'"), std::string::npos);
}

// A fence that is bound to r1 is moved to r2, and to a third, whatever their numbers.
// EVIDENCE-OF: G5
TEST(Seal, AnOperatorMovesAFenceToTheHoldersTokenOrToAFreshOne) {
  const Stint stint;
  const std::string page = cat("file:", stint.dir().file("page"));
  for (const std::string& target : {std::string("admit:x"), page}) {
    const auto adopt = [&](const std::string& resource) {
      return stint({"seal", target, "--resource", resource, "--adopt", "--why", "moved"});
    };
    const std::string held = cat("held", target.size());
    const std::string idle = cat("idle", target.size());
    for (int i = 0; i < 3; ++i) {
      ASSERT_EQ(stint({"run", "r1", "--seal", target, "--", "true"}).exit_code, 0);
    }
    ASSERT_EQ(stint({"acquire", held}).out, "1\n");
    const Finished plain = stint({"seal", target, "--resource", held, "--token", "1"});
    EXPECT_EQ(plain.exit_code, 13) << plain.err;
    const Finished moved = adopt(held);
    ASSERT_EQ(moved.exit_code, 0) << moved.err;
    EXPECT_EQ(stint.lease(held, "token"), "1") << "its holder writes on";
    EXPECT_EQ(stint({"seal", target, "--resource", held, "--token", "1"}).exit_code, 0);
    EXPECT_EQ(stint.events({"target_adopted", "\"from\":\"r1\"", target}), 1);
    const Finished former = stint({"run", "r1", "--", "true"});
    EXPECT_EQ(former.exit_code, 0) << "it is no longer r1's to seal: " << former.err;
    EXPECT_EQ(stint({"run", "r1", "--seal", target, "--", "true"}).exit_code, 13);
    // Nobody holds the third.
    ASSERT_EQ(stint({"run", idle, "--", "true"}).exit_code, 0);
    const Finished again = adopt(idle);
    ASSERT_EQ(again.exit_code, 0) << again.err;
    EXPECT_EQ(stint.lease(idle, "token"), "2") << "a fresh one";
    EXPECT_EQ(stint({"seal", target, "--resource", idle, "--token", "1"}).exit_code, 13);
    EXPECT_EQ(stint({"seal", target, "--resource", held, "--token", "1"}).exit_code, 13);
    EXPECT_EQ(stint({"run", idle, "--seal", target, "--", "true"}).exit_code, 0);
    ASSERT_EQ(stint({"release", held, "--token", "1"}).exit_code, 0);
  }
  const Finished never = stint({"seal", "admit:x", "--resource", "new", "--adopt", "--why", "w"});
  EXPECT_EQ(never.exit_code, 2) << never.err;
}

TEST(Seal, CheckListsTheNamesOutsideEveryPrefix) {
  const Stint stint;
  ASSERT_EQ(stint({"run", "team/r", "--seal", "admit:old", "--seal", "admit:team/x", "--", "true"})
                .exit_code,
            0);
  const auto told = [&] { return stint({"guard", "check", "admit:team/x"}); };
  EXPECT_EQ(told().out.find("admit:old"), std::string::npos) << "no key has a prefix";
  ASSERT_EQ(stint({"key", "create", "team", "--allow", "admit", "--prefix", "team/"}).exit_code, 0);
  const Finished listed = told();
  EXPECT_EQ(listed.exit_code, 0);
  EXPECT_NE(listed.out.find("warn  'admit:old' lies outside"), std::string::npos) << listed.out;
  EXPECT_EQ(listed.out.find("'admit:team/x' lies outside"), std::string::npos) << listed.out;
}

TEST(Seal, AProxysFenceThatAnotherResourceOccupiesIsTakenBack) {
  const Stint stint;
  const std::string name = "http://127.0.0.1:9#site";
  ASSERT_EQ(stint({"run", "site", "--", "true"}).exit_code, 0);
  ASSERT_EQ(stint({"acquire", "squatter"}).out, "1\n");
  os::SystemClock clock;
  os::SystemRandom random;
  const auto opened =
      app::Opened::open({.url = app::parse_store_url(cat("sqlite:", stint.database())).value(),
                         .state_directory = "",
                         .may_create = false},
                        clock, random)
          .value();
  core::Offer offer;
  offer.generation = opened->leases().generation();
  offer.resource = "squatter";
  offer.token = Token(1);
  for (const char* kind : {"proxy:", "proxy-passed:"}) {
    ASSERT_EQ(opened->fences().seal(kind + name, offer)->verdict, core::Verdict::Admitted);
  }
  const auto adopt = [&](const std::string& resource) {
    return stint({"seal", cat("proxy:", name), "--resource", resource, "--adopt", "--why", "w"});
  };
  EXPECT_EQ(adopt("squatter").exit_code, 2) << "it is the site's";
  const Finished taken = adopt("site");
  EXPECT_EQ(taken.exit_code, 0) << taken.err;
  for (const char* kind : {"proxy:", "proxy-passed:"}) {
    EXPECT_EQ((*opened->fences().fence(kind + name))->resource, "site");
  }
  EXPECT_TRUE(opened->fences().sealed(ResourceName::parse("site").value())->empty());
  EXPECT_NE(fence(stint, cat("proxy:", name)).find("of 'site'"), std::string::npos);
}

// What has been sealed stays a duty, whoever took the target meanwhile.
TEST(RunSeal, WhatWasSealedAndRefusesNowStopsEveryRun) {
  const Stint stint;
  const std::string page = cat("file:", stint.dir().file("page"));
  ASSERT_EQ(stint({"run", "r", "--seal", page, "--", "true"}).exit_code, 0);
  std::filesystem::remove(stint.dir().file(".page.fence.1"));
  ASSERT_EQ(stint({"run", "other", "--seal", page, "--", "true"}).exit_code, 0);
  for (int i = 0; i < 2; ++i) {
    const Finished stopped = stint({"run", "r", "--", "true"});
    EXPECT_EQ(stopped.exit_code, 13) << stopped.err;
  }
}

// EVIDENCE-OF: G5
TEST(Orders, SealWhatIsOnlyAboutToBeSealed) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "r"}).out, "1\n");
  const std::string path = stint.dir().file("page");
  remember(stint, "r",
           cat("file:", std::filesystem::canonical(stint.dir().path()).string(), "/page"));
  const Finished revoked = stint({"revoke", "r", "--token", "1", "--why", "w"});
  EXPECT_EQ(revoked.exit_code, 0) << revoked.err;
  EXPECT_TRUE(std::filesystem::exists(stint.dir().file(".page.fence.2")));
  std::filesystem::remove(stint.dir().file(".page.fence.2"));
  ASSERT_EQ(stint({"acquire", "r"}).out, "3\n");
  write_text(stint.dir().file("body"), "x");
  const Finished missing =
      stint({"write", path, "--from", stint.dir().file("body"), "--resource", "r", "--token", "3"});
  EXPECT_EQ(missing.exit_code, 0) << missing.err;
  EXPECT_EQ(stint.events({"fence_made_anew", "page"}), 1)
      << "the order's fence stood, and was told";
}

// EVIDENCE-OF: G5
TEST(Orders, SealTheKnownTargetsAndSayWhichWereNotReached) {
  const Stint stint;
  ASSERT_EQ(stint({"run", "r", "--seal", "admit:x", "--", "true"}).exit_code, 0);
  const Finished revoked = stint({"revoke", "r", "--token", "1", "--why", "w"});
  EXPECT_EQ(revoked.exit_code, 0) << revoked.err;
  EXPECT_NE(revoked.err.find("sealed 'admit:x'"), std::string::npos) << revoked.err;
  EXPECT_NE(fence(stint, "admit:x").find("token 2"), std::string::npos);
  const Finished late =
      stint({"admit", "x", "--resource", "r", "--token", "1", "--key", "k", "--", "echo", "late"});
  EXPECT_EQ(late.exit_code, 13) << "a straggler is shut out by hand";
  EXPECT_EQ(late.out, "");
  remember(stint, "r", "proxy:http://h/");
  const Finished moved =
      stint({"transfer", "r", "--to", "bob", "--token", "2", "--why", "w", "--json"});
  EXPECT_EQ(moved.exit_code, 1) << moved.err;
  EXPECT_NE(moved.out.find("\"sealed\":[{\"target\":\"admit:x\"}]"), std::string::npos)
      << moved.out;
  EXPECT_NE(moved.out.find("\"not_reached\":[{\"target\":\"proxy:http://h/\""), std::string::npos)
      << moved.out;
  EXPECT_EQ(stint.lease("r", "token"), "3") << "the order itself is carried out";
  EXPECT_NE(fence(stint, "admit:x").find("token 3"), std::string::npos);
}

}  // namespace
}  // namespace stint::test
