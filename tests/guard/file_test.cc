// The fence of a file, step by step and with bad input: a clear answer, and nothing changed.
// EVIDENCE-OF: G5 G12
#include <unistd.h>

#include "base/random.h"
#include "guard/fence_file.h"
#include "os/random.h"
#include "tests/guard/file_fixture.h"

namespace stint::test {
namespace {

TEST_F(GuardFile, TheFirstWriteSealsAndIsRemembered) {
  fences.issue(1);
  const auto answer = write(1, "one");
  EXPECT_TRUE(done(answer)) << told(answer);
  EXPECT_EQ(content(), "one");
  EXPECT_EQ(kept_in(dir.path()), std::vector<std::string>{".page.fence.1"});
  EXPECT_EQ(fences.targets, std::vector<std::string>{cat("file:", fs::canonical(path).string())});
}

TEST_F(GuardFile, ASecondWriteAsksNoStore) {
  fences.issue(1);
  ASSERT_TRUE(done(write(1, "one")));
  fences.reachable = false;
  const int before = fences.asked;
  EXPECT_TRUE(done(write(1, "two")));
  EXPECT_EQ(fences.asked, before);
  EXPECT_EQ(content(), "two");
}

TEST_F(GuardFile, ALowerTokenIsStale) {
  fences.issue(2);
  ASSERT_TRUE(done(write(2, "two")));
  const auto answer = write(1, "one");
  EXPECT_EQ(verdict_of(answer), core::Verdict::Stale) << told(answer);
  EXPECT_EQ(content(), "two");
  EXPECT_EQ(kept_in(dir.path()), std::vector<std::string>{".page.fence.2"});
}

// What a write under Pass::warn would have been refused for; empty: it was not let through so.
std::optional<core::Verdict> warned_of(const Result<guard::WriteAnswer>& answer) {
  const auto* written = answer ? std::get_if<guard::Written>(&*answer) : nullptr;
  if (written == nullptr || !written->warned || !written->warned->warned) return std::nullopt;
  return written->warned->verdict;
}

TEST_F(GuardFile, UnderWarnItIsWrittenAllTheSameAndNoFenceMoves) {
  fences.issue(2);
  ASSERT_TRUE(done(write(2, "two")));
  guard::Pass late = pass_with(1);
  late.warn = true;
  const auto answer = guard::write_file({.path = path, .body = "one"}, late, &fences);
  EXPECT_EQ(warned_of(answer), core::Verdict::Stale) << told(answer);
  EXPECT_EQ(content(), "one");
  EXPECT_EQ(kept_in(dir.path()), std::vector<std::string>{".page.fence.2"});
  // It changes nothing for a good token, nor for a seal.
  guard::Pass good = pass_with(2);
  good.warn = true;
  const auto usual = guard::write_file({.path = path, .body = "two"}, good, &fences);
  EXPECT_TRUE(done(usual)) << told(usual);
  EXPECT_EQ(warned_of(usual), std::nullopt);
  EXPECT_EQ(verdict_of(guard::seal_file(path, seal_with(late), &fences)), core::Verdict::Stale);
  EXPECT_EQ(kept_in(dir.path()), std::vector<std::string>{".page.fence.2"});
}

TEST_F(GuardFile, UnderWarnAUsedTokenWritesAgainAndSaysSo) {
  fences.issue(1);
  ASSERT_TRUE(done(once(1, "one", "k")));
  guard::Pass again = pass_with(1);
  again.warn = true;
  again.mode = core::FenceMode::Once;
  again.key = "another";
  const auto answer = guard::write_file({.path = path, .body = "two"}, again, &fences);
  EXPECT_EQ(warned_of(answer), core::Verdict::Used) << told(answer);
  EXPECT_EQ(content(), "two");
  EXPECT_TRUE(kept_in(dir.path(), ".stage.").empty());
}

TEST_F(GuardFile, UnderWarnConditionsOfOnesOwnStillCount) {
  fences.issue(2);
  ASSERT_TRUE(done(write(2, "two")));
  guard::Pass late = pass_with(1);
  late.warn = true;
  const auto unmet =
      guard::write_file({.path = path, .body = "one", .if_match = "none"}, late, &fences);
  EXPECT_FALSE(done(unmet));
  late.require_live = true;
  EXPECT_EQ(verdict_of(guard::write_file({.path = path, .body = "one"}, late, &fences)),
            core::Verdict::Stale);
  EXPECT_EQ(content(), "two");
  EXPECT_EQ(kept_in(dir.path()), std::vector<std::string>{".page.fence.2"});
}

TEST_F(GuardFile, SupersededAtTheStoreIsStaleThoughNothingWasSealed) {
  fences.issue(2);
  EXPECT_EQ(verdict_of(write(1, "one")), core::Verdict::Stale);
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(GuardFile, ATokenThatWasNeverIssuedOrNeverGrantedIsRefused) {
  fences.issue(3);
  EXPECT_EQ(verdict_of(write(4, "x")), core::Verdict::NeverIssued);
  fences.granted = false;
  EXPECT_EQ(verdict_of(write(3, "x")), core::Verdict::NeverGranted);
  EXPECT_TRUE(kept_in(dir.path()).empty());
  // The order that issued it may seal.
  auto request = seal_with(pass_with(3));
  request.by_order = true;
  EXPECT_TRUE(done(guard::seal_file(path, request, &fences)));
}

TEST_F(GuardFile, NoStoreIsUnavailableAndNothingIsChanged) {
  fences.issue(1);
  fences.reachable = false;
  const auto answer = write(1, "one");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::Unavailable);
  EXPECT_TRUE(kept_in(dir.path()).empty());
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(GuardFile, WithoutATokenAFencedFileRefuses) {
  fences.issue(1);
  const auto nothing = write(0, "x");
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.error().code, Code::Invalid);
  ASSERT_TRUE(done(write(1, "one")));
  EXPECT_EQ(verdict_of(write(0, "x")), core::Verdict::NoToken);
  EXPECT_EQ(content(), "one");
}

TEST_F(GuardFile, AFenceOfGarbageRefusesEverything) {
  fences.issue(2);
  ASSERT_TRUE(done(write(2, "two")));
  const std::string good = read_text(dir.file(".page.fence.2"));
  std::string other = good;
  other.replace(other.find("token 2"), 7, "token 3");
  const std::string long_one(5000, 'x');
  for (const std::string& garbage :
       {std::string(), std::string("stint fence 1\n"), std::string("\0\xff\x1b[2J", 6), other,
        good.substr(0, good.size() - 1), good + "more\n", "\n" + good, long_one,
        std::string("0")}) {
    write_text(dir.file(".page.fence.2"), garbage);
    for (const std::uint64_t token : {1, 2, 3}) {
      fences.issue(token);
      const auto written = write(token, "x");
      ASSERT_FALSE(written) << token << " " << printable(garbage);
      EXPECT_EQ(written.error().code, Code::Unavailable);
      EXPECT_FALSE(seal(token));
    }
  }
  for (const char* name :
       {".page.fence.007", ".page.fence.0", ".page.fence.99999999999999999999999"}) {
    write_text(dir.file(".page.fence.2"), good);
    write_text(dir.file(name), good);
    fences.issue(2);
    EXPECT_FALSE(write(2, "x")) << name;
    EXPECT_FALSE(seal(2)) << name;
    fs::remove(dir.file(name));
  }
  EXPECT_EQ(content(), "two");
}

TEST_F(GuardFile, NamesOfOtherArtifactsAreNotFences) {
  fences.issue(2);
  for (const char* name : {".page.fence.7.fence.9", ".page.fence.7.bak", ".page.fence.", ".page",
                           ".page.fence", ".page2.fence.9", "page.fence.9"}) {
    write_text(dir.file(name), "x");
  }
  EXPECT_TRUE(done(write(2, "two")));
  EXPECT_TRUE(fs::exists(dir.file(".page.fence.7.fence.9")));
}

TEST_F(GuardFile, AGuardsOwnFileIsNoArtifact) {
  fences.issue(1);
  for (const char* name : {".page.fence.9", ".page.stage.9.aa000000000000000000000000000000"}) {
    path = dir.file(name);
    const auto answer = write(1, "x");
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Code::Invalid);
  }
}

TEST_F(GuardFile, AFenceOfAnotherResourceIsForeign) {
  fences.issue(2);
  ASSERT_TRUE(done(write(2, "two")));
  guard::Pass pass = pass_with(3);
  pass.resource = ResourceName::parse("other").value();
  fences.issue(3);
  const auto answer = guard::write_file({.path = path, .body = "x"}, pass, &fences);
  EXPECT_EQ(verdict_of(answer), core::Verdict::Foreign);
  EXPECT_EQ(content(), "two");
}

TEST_F(GuardFile, ARestoredStoreIsNoticed) {
  fences.issue(9);
  ASSERT_TRUE(done(write(9, "nine")));
  fences.issue(10);
  ASSERT_TRUE(done(seal(10)));
  fences.issue(5);
  fences.generation = generation_number(1);
  fences.ancestors = {generation_number(0)};
  const auto answer = guard::write_file({.path = path, .body = "x"}, pass_with(5, 1), &fences);
  EXPECT_EQ(verdict_of(answer), core::Verdict::Restored) << told(answer);
}

TEST_F(GuardFile, ADescendantGoesOnWithoutAdoption) {
  fences.issue(9);
  ASSERT_TRUE(done(write(9, "nine")));
  fences.generation = generation_number(1);
  EXPECT_EQ(verdict_of(guard::seal_file(path, seal_with(pass_with(12, 1)), &fences)),
            core::Verdict::Foreign);
  fences.ancestors = {generation_number(0)};
  fences.issue(12);
  const auto answer =
      guard::write_file({.path = path, .body = "twelve"}, pass_with(12, 1), &fences);
  EXPECT_TRUE(done(answer)) << told(answer);
  EXPECT_EQ(kept_in(dir.path()),
            std::vector<std::string>{cat(".page.fence.12.", generation_number(1).hex())});
  // The former life's own token is refused, though its fence had the same form of number.
  fences.generation = generation_number(0);
  EXPECT_EQ(verdict_of(write(12, "x")), core::Verdict::Foreign);
  EXPECT_EQ(content(), "twelve");
}

TEST_F(GuardFile, AnOperatorAdoptsOverAHigherOrEqualForeignFence) {
  for (const std::uint64_t token : {3, 9}) {
    const std::string was = cat("old", token);
    fences.generation = generation_number(0);
    path = dir.file(cat("page", token));
    fences.issue(9);
    ASSERT_TRUE(done(write(9, was)));
    write_text(dir.file(cat(".page", token, ".stage.9.", generation_number(0).hex())), "zombie");
    fences.generation = generation_number(1);
    fences.issue(token);
    auto request = seal_with(pass_with(token, 1));
    EXPECT_EQ(verdict_of(guard::seal_file(path, request, &fences)), core::Verdict::Foreign);
    request.adopt = guard::SealRequest::Adoption{"the old store is gone\n", "ops"};
    const auto sealed = guard::seal_file(path, request, &fences);
    ASSERT_TRUE(done(sealed)) << told(sealed);
    const auto left = kept_in(dir.path(), cat("page", token));
    ASSERT_EQ(left.size(), 1U);
    EXPECT_EQ(left[0], cat(".page", token, ".fence.", token, ".", generation_number(1).hex()));
    const auto written =
        guard::write_file({.path = path, .body = "new"}, pass_with(token, 1), nullptr);
    EXPECT_TRUE(done(written)) << told(written);
    // A late seal of the former life, which had looked before the adoption: it stands below.
    guard::StandingFence late;
    late.fence.generation = generation_number(0);
    late.fence.resource = "r";
    late.fence.token = Token(11);
    write_text(dir.file(cat(".page", token, ".fence.11")), guard::fence_text(late));
    const auto again =
        guard::write_file({.path = path, .body = "newer"}, pass_with(token, 1), nullptr);
    EXPECT_TRUE(done(again)) << told(again);
    EXPECT_EQ(content(), "newer");
    EXPECT_FALSE(fs::exists(dir.file(cat(".page", token, ".fence.11"))));
  }
}

TEST_F(GuardFile, ATornFenceIsAdoptedOnlyByTheNewestToken) {
  fences.issue(9);
  ASSERT_TRUE(done(write(9, "nine")));
  write_text(dir.file(".page.fence.10"), "?");
  auto request = seal_with(pass_with(9));
  EXPECT_FALSE(guard::seal_file(path, request, &fences));
  request.adopt = guard::SealRequest::Adoption{"a disk was full", "ops"};
  fences.issue(10);
  EXPECT_EQ(verdict_of(guard::seal_file(path, request, &fences)), core::Verdict::Stale);
  request.pass = pass_with(10);
  const auto sealed = guard::seal_file(path, request, &fences);
  ASSERT_TRUE(done(sealed)) << told(sealed);
  EXPECT_TRUE(done(write(10, "ten")));
  EXPECT_EQ(kept_in(dir.path()).size(), 1U);
}

TEST_F(GuardFile, TwoStoresSideBySideAreRefusedUntilAdopted) {
  for (const int number : {0, 1}) {
    guard::StandingFence fence;
    fence.fence.generation = generation_number(number);
    fence.fence.resource = "r";
    fence.fence.token = Token(static_cast<std::uint64_t>(5 + number));
    write_text(dir.file(cat(".page.fence.", 5 + number)), guard::fence_text(fence));
  }
  fences.issue(5);
  EXPECT_FALSE(write(5, "x"));
  fences.generation = generation_number(1);
  fences.issue(6);
  EXPECT_FALSE(guard::write_file({.path = path, .body = "x"}, pass_with(6, 1), &fences));
  auto request = seal_with(pass_with(6, 1));
  request.adopt = guard::SealRequest::Adoption{"this one", "ops"};
  const auto sealed = guard::seal_file(path, request, &fences);
  EXPECT_TRUE(done(sealed)) << told(sealed);
  EXPECT_TRUE(done(guard::write_file({.path = path, .body = "y"}, pass_with(6, 1), nullptr)));
}

TEST_F(GuardFile, AMissingFenceOfASealedTargetIsRefusedUntilTheHolderSeals) {
  fences.issue(1);
  ASSERT_TRUE(done(write(1, "one")));
  fs::remove(dir.file(".page.fence.1"));
  for (const std::uint64_t token : {1, 2}) {
    fences.issue(token);
    const auto answer = write(token, "x");
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Code::Unavailable);
    EXPECT_NE(answer.error().message.find("missing"), std::string::npos);
  }
  EXPECT_EQ(content(), "one");
  EXPECT_EQ(verdict_of(seal(1)), core::Verdict::Stale);
  ASSERT_TRUE(done(seal(2)));
  EXPECT_TRUE(done(write(2, "two")));
}

// EVIDENCE-OF: G5
TEST_F(GuardFile, AMissingFenceIsMadeAnewByTheLiveHolderOfTheNewestTokenAlone) {
  os::SystemRandom random;
  const Claim mine = Claim::make(random);
  const Claim other = Claim::make(random);
  const auto write_with = [&](std::uint64_t token, const Claim& claim) {
    guard::Pass pass = pass_with(token);
    pass.claim = claim;
    return guard::write_file({.path = dir.file("page"), .body = "x"}, pass, &fences);
  };
  fences.issue(1);
  fences.claim = mine.hash();
  ASSERT_TRUE(done(write_with(1, mine)));
  const auto lose_it = [&](const char* token) { fs::remove(dir.file(cat(".page.fence.", token))); };
  lose_it("1");
  EXPECT_FALSE(write_with(1, other)) << "another claim";
  fences.live = false;
  EXPECT_FALSE(write_with(1, mine)) << "its lease has run out";
  fences.live = true;
  EXPECT_TRUE(done(write_with(1, mine)));
  EXPECT_TRUE(fs::exists(dir.file(".page.fence.1")));
  lose_it("1");
  fences.issue(2);
  const auto late = write_with(1, mine);
  ASSERT_TRUE(late) << late.error().message;
  EXPECT_EQ(verdict_of(late), core::Verdict::Stale);
  EXPECT_FALSE(fs::exists(dir.file(".page.fence.1")));
}

// A holder that was killed between the two words to the store, before its fence stood.
TEST_F(GuardFile, AFenceThatWasOnlyAboutToBeMadeIsNotMissing) {
  const std::string target = cat("file:", fs::canonical(dir.path()).string(), "/page");
  for (const std::uint64_t token : {1, 2}) {
    fences.targets = {target};
    fences.sealing = {target};
    fences.issue(token);
    const auto answer = write(token, "x");
    EXPECT_TRUE(done(answer)) << told(answer);
    EXPECT_TRUE(fences.sealing.empty()) << "told when it stands";
    EXPECT_EQ(fences.targets, std::vector<std::string>{target});
    fs::remove(dir.file(cat(".page.fence.", token)));
    EXPECT_FALSE(write(token, "y")) << "from then on a missing one is an alarm";
  }
  EXPECT_EQ(content(), "x");
}

// It was killed after its fence stood: the next holder's seal tells.
TEST_F(GuardFile, AFenceThatWasNotToldIsToldByTheNextHolder) {
  fences.issue(1);
  ASSERT_TRUE(done(write(1, "one")));
  fences.sealing = fences.targets;
  EXPECT_TRUE(done(write(1, "two")));
  fences.issue(2);
  EXPECT_TRUE(done(write(2, "three")));
  EXPECT_TRUE(fences.sealing.empty());
}

TEST_F(GuardFile, AFenceThatAnotherProcessMadeSinceOneLookedIsNotMissing) {
  fences.issue(1);
  fences.meanwhile = [&] { ASSERT_TRUE(done(write(1, "the other's"))); };
  const auto answer = write(1, "one");
  EXPECT_TRUE(done(answer)) << told(answer);
  EXPECT_EQ(content(), "one");
  EXPECT_TRUE(fences.sealing.empty());
}

// Another resource's fence came between the look and the seal.
TEST_F(GuardFile, ATargetThatRefusesItsFirstSealIsTakenBack) {
  fences.issue(1);
  guard::Pass theirs = pass_with(1);
  theirs.resource = ResourceName::parse("theirs").value();
  fences.meanwhile = [&] { ASSERT_TRUE(done(guard::seal_file(path, seal_with(theirs), &fences))); };
  EXPECT_EQ(verdict_of(write(1, "one")), core::Verdict::Foreign);
  EXPECT_TRUE(fences.targets.empty());
  EXPECT_TRUE(fences.sealing.empty());
}

TEST_F(GuardFile, ATokenThatWasIssuedTwiceIsNoticedByItsClaim) {
  SeededRandom chance(7);
  fences.issue(4);
  guard::Pass first = pass_with(4);
  first.claim = Claim::make(chance);
  ASSERT_TRUE(done(guard::write_file({.path = path, .body = "a"}, first, &fences)));
  guard::Pass second = pass_with(4);
  second.claim = Claim::make(chance);
  const auto answer = guard::write_file({.path = path, .body = "b"}, second, &fences);
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("twice"), std::string::npos);
  EXPECT_FALSE(guard::seal_file(path, seal_with(second), &fences));
  // Sealed by order first, as a transfer does: then taken up under the same token.
  fences.issue(5);
  auto order = seal_with(pass_with(5));
  order.by_order = true;
  ASSERT_TRUE(done(guard::seal_file(path, order, &fences)));
  second.token = Token(5);
  EXPECT_TRUE(done(guard::write_file({.path = path, .body = "b"}, second, &fences)));
}

TEST(FenceFile, WhatIsWrittenIsRead) {
  guard::StandingFence fence;
  fence.fence.generation = generation_number(2);
  fence.fence.resource = "site/a \xc3\xa9";
  fence.fence.token = Token(Token::kMax);
  fence.life = 3;
  fence.check = std::string(16, 'c');
  const auto name = guard::parse_beside("x", guard::fence_name("x", fence.fence.token));
  ASSERT_TRUE(name && *name);
  const auto parsed = guard::parse_fence(**name, guard::fence_text(fence));
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(guard::fence_text(*parsed), guard::fence_text(fence));
}

// No byte of a fence can be changed so that it still says something about this token.
TEST(FenceFile, NoChangedByteLowersAFence) {
  guard::StandingFence fence;
  fence.fence.generation = generation_number(2);
  fence.fence.resource = "r";
  fence.fence.token = Token(77);
  const auto name = guard::parse_beside("x", ".x.fence.77");
  const std::string good = guard::fence_text(fence);
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string text = good;
      text[at] = static_cast<char>(byte);
      const auto parsed = guard::parse_fence(**name, text);
      if (parsed) {
        EXPECT_EQ(parsed->fence.token, Token(77));
      }
    }
    EXPECT_FALSE(guard::parse_fence(**name, good.substr(0, at)));
  }
}

}  // namespace
}  // namespace stint::test