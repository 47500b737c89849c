// The checker of the checker: each rule is broken once, by hand, and that very rule is named.
#include "tests/support/history_checker.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <thread>

#include "base/text.h"
#include "tests/history/tale.h"
#include "tests/support/process.h"

namespace stint::test {
namespace {

TEST(HistoryChecker, FindsNothingInACleanHistory) {
  Tale t;
  t.granted(1, 0);
  t.refused(1);
  t.renewed(1, 50);
  t.released(1, 80);
  t.released(1, 85);
  t.granted(2, 90);
  t.lost(verbs::kRenew, 1, "superseded");
  t.lost(verbs::kRenew, 2, "expired", 190);
  t.granted(3, 200);
  t.moved(verbs::kRevoke, 3, 4, 210);
  t.granted(5, 211);
  t.crash();
  t.granted(6, 311);
  EXPECT_EQ(t.broken(), Names{}) << check_history(t.lines).text();
}

TEST(HistoryChecker, KnowsAReservationAndItsTakingUpAsOneGrant) {
  Tale t;
  t.granted(1, 0);
  t.moved(verbs::kTransfer, 1, 2, 10);
  t.granted(2, 20);
  t.renewed(2, 30);
  EXPECT_EQ(t.broken(), Names{});
}

TEST(HistoryChecker, NamesATokenThatIsGivenOutTwice) {
  Tale t;
  t.granted(7, 0);
  t.granted(7, 200);
  EXPECT_EQ(t.broken(), Names{1});
}

TEST(HistoryChecker, NamesATokenThatGoesBackAmongOverlappingGrants) {
  Tale t;
  HistoryEvent first = t.begin(verbs::kAcquire);
  HistoryEvent second = t.begin(verbs::kAcquire);
  first.token = Token(6);
  second.token = Token(5);
  first.ttl = second.ttl = Millis(10);
  t.end(second, Phase::Ok, 100);
  t.end(first, Phase::Ok, 0);
  EXPECT_EQ(t.broken(), Names{1});
}

TEST(HistoryChecker, NamesATokenThatACrashForgot) {
  Tale t;
  t.granted(7, 0);
  t.crash();
  t.granted(7, 200);
  EXPECT_EQ(t.broken(), Names{2});
}

TEST(HistoryChecker, NamesTwoGrantsAtOnce) {
  Tale t;
  t.granted(1, 0);
  t.renewed(1, 60);
  t.granted(2, 120);
  EXPECT_EQ(t.broken(), Names{3});
}

TEST(HistoryChecker, NamesTwoGrantsAtOnceWithOthersBetween) {
  Tale t;
  t.granted(1, 0, 1000);
  t.granted(2, 1000, 10);
  t.granted(3, 900, 10);
  EXPECT_TRUE(t.broken().contains(3));
}

TEST(HistoryChecker, NamesAnEarlyExpiry) {
  Tale t;
  t.granted(1, 0);
  t.renewed(1, 50);
  t.lost(verbs::kRenew, 1, "expired", 149);
  t.granted(2, 160);
  EXPECT_EQ(t.broken(), Names{4});
}

TEST(HistoryChecker, NamesAnEarlyExpiryThatCarriesNoTime) {
  Tale t;
  t.granted(1, 0);
  t.lost(verbs::kRenew, 1, "expired");
  t.released(1, 60);
  EXPECT_EQ(t.broken(), Names{4});
}

TEST(HistoryChecker, NamesARenewalAfterTheRelease) {
  Tale t;
  t.granted(1, 0);
  t.released(1, 10);
  t.renewed(1, 20);
  EXPECT_EQ(t.broken(), Names{5});
}

TEST(HistoryChecker, NamesARenewalAfterTheExpiry) {
  Tale t;
  t.granted(1, 0);
  t.renewed(1, 150);
  EXPECT_EQ(t.broken(), Names{5});
  EXPECT_EQ(t.broken({.fires_late_by = std::nullopt}), Names{});
}

TEST(HistoryChecker, NamesARenewalOfASupersededToken) {
  Tale t;
  t.granted(1, 0);
  t.granted(2, 100);
  t.renewed(1, 110);
  EXPECT_TRUE(t.broken().contains(5));
}

TEST(HistoryChecker, NamesARenewalThatShortens) {
  Tale t;
  t.granted(1, 0, 1000);
  HistoryEvent event = t.begin(verbs::kRenew, 1);
  event.ttl = Millis(1000);
  event.remaining = Millis(100);
  t.end(event, Phase::Ok, 500);
  EXPECT_EQ(t.broken(), Names{5});
}

TEST(HistoryChecker, NamesAReleaseBySomebodyElse) {
  Tale t;
  t.granted(1, 0);
  t.granted(2, 100);
  t.released(1, 110);
  EXPECT_EQ(t.broken(), Names{6});
}

TEST(HistoryChecker, NamesAReleaseThatNobodyAskedFor) {
  Tale t;
  t.granted(1, 0);
  t.lost(verbs::kRenew, 1, "released");
  EXPECT_EQ(t.broken(), Names{6});
}

TEST(HistoryChecker, NamesAReleaseThatWasForgotten) {
  Tale t;
  t.granted(1, 0);
  t.released(1, 10);
  t.refused(1);
  EXPECT_EQ(t.broken(), Names{6});
}

// It need not be synced (the law, section 3); what was acknowledged after the crash stands.
TEST(HistoryChecker, LetsACrashForgetAReleaseBeforeIt) {
  Tale t;
  t.granted(1, 0);
  t.released(1, 10);
  t.crash();
  t.refused(1);
  EXPECT_EQ(t.broken(), Names{});
}

TEST(HistoryChecker, NamesAReleaseAfterTheCrashThatWasForgotten) {
  Tale t;
  t.granted(1, 0);
  t.crash();
  t.released(1, 10);
  t.refused(1);
  EXPECT_EQ(t.broken(), Names{6});
}

TEST(HistoryChecker, LetsAnUnknownReleaseHaveHappenedOrNot) {
  Tale happened;
  happened.granted(1, 0);
  happened.unknown(verbs::kRelease, 1);
  happened.granted(2, 20);
  EXPECT_EQ(happened.broken(), Names{}) << check_history(happened.lines).text();
  Tale did_not;
  did_not.granted(1, 0);
  did_not.unknown(verbs::kRelease, 1);
  did_not.refused(1);
  did_not.renewed(1, 20);
  EXPECT_EQ(did_not.broken(), Names{});
  Tale seen;
  seen.granted(1, 0);
  seen.unknown(verbs::kRelease, 1);
  seen.lost(verbs::kRenew, 1, "released");
  EXPECT_EQ(seen.broken(), Names{});
}

TEST(HistoryChecker, LetsAnUnknownRenewalHaveHappenedOrNot) {
  Tale happened;
  happened.granted(1, 0);
  happened.unknown(verbs::kRenew, 1);
  happened.renewed(1, 150);
  EXPECT_EQ(happened.broken(), Names{});
  Tale did_not;
  did_not.granted(1, 0);
  did_not.unknown(verbs::kRenew, 1);
  did_not.lost(verbs::kRenew, 1, "expired", 110);
  did_not.granted(2, 120);
  EXPECT_EQ(did_not.broken(), Names{});
}

TEST(HistoryChecker, LetsAnUnknownAcquireTakeATokenOrNot) {
  Tale t;
  t.granted(1, 0);
  t.unknown(verbs::kAcquire);
  t.granted(3, 250);
  EXPECT_EQ(t.broken(), Names{});
  HistoryEvent replay = t.begin(verbs::kAcquire);
  replay.token = Token(3);
  replay.replayed = true;
  replay.ttl = Millis(60);
  t.end(replay, Phase::Ok, 280);
  EXPECT_EQ(t.broken(), Names{});
}

TEST(HistoryChecker, TakesAClientThatDiedAsUnknown) {
  Tale t;
  t.granted(1, 0);
  t.begin(verbs::kRelease, 1);
  t.granted(2, 20);
  EXPECT_EQ(t.broken(), Names{});
}

TEST(HistoryChecker, JudgesAReplayedGrantLikeAGrant) {
  Tale t;
  t.unknown(verbs::kAcquire);
  HistoryEvent replay = t.begin(verbs::kAcquire);
  replay.token = Token(1);
  replay.replayed = true;
  replay.ttl = Millis(60);
  t.end(replay, Phase::Ok, 40);
  t.granted(2, 50);
  EXPECT_EQ(t.broken(), Names{3});
}

TEST(HistoryChecker, KeepsResourcesApart) {
  Tale t;
  t.granted(9, 0);
  t.resource = "other";
  t.granted(1, 10);
  EXPECT_EQ(t.broken(), Names{});
}

TEST(HistoryFile, KeepsTheLinesOfThreadsAndProcessesWhole) {
  constexpr int kWriters = 4;
  constexpr int kLines = 200;
  const TempDir folder;
  const std::string path = folder.file("history.jsonl");
  const auto write_some = [&path](std::string_view client) {
    History history(path);
    for (int i = 0; i < kLines; ++i) {
      HistoryEvent event;
      event.op = history.next_op(client);
      event.client = client;
      event.verb = verbs::kRenew;
      event.resource = "a name with \"quotes\"";
      event.token = Token(static_cast<std::uint64_t>(i + 1));
      event.store_time = Millis(i);
      history.write(event);
    }
  };
  std::vector<pid_t> children;
  for (int i = 0; i < kWriters; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      write_some("process");
      ::_exit(0);
    }
    children.push_back(child);
  }
  std::thread thread([&] { write_some("thread"); });
  thread.join();
  for (const pid_t child : children) ::waitpid(child, nullptr, 0);
  const auto loaded = load_history(path);
  ASSERT_TRUE(loaded) << loaded.error().message;
  EXPECT_EQ(loaded->size(), static_cast<std::size_t>((kWriters + 1) * kLines));
  std::set<std::string> ids;
  for (const HistoryEvent& event : *loaded) ids.insert(event.op);
  EXPECT_EQ(ids.size(), loaded->size());
}

TEST(HistoryFile, LeavesOutALineThatIsCutOff) {
  const TempDir folder;
  const std::string path = folder.file("history.jsonl");
  HistoryEvent event;
  event.op = "1";
  write_text(path, cat(to_line(event), '\n', R"({"op":"2","ph)"));
  const auto loaded = load_history(path);
  ASSERT_TRUE(loaded);
  EXPECT_EQ(loaded->size(), 1U);
}

}  // namespace
}  // namespace stint::test
