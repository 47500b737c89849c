// stint doctor and stint store copy, as a person uses them.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/text.h"
#include "tests/cli/stint.h"

namespace stint::test {
namespace {

// How many names in the folder begin so.
int files_like(const TempDir& dir, const std::string& start) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(dir.path())) {
    count += entry.path().filename().string().starts_with(start) ? 1 : 0;
  }
  return count;
}

TEST(DoctorCommand, SaysOkLineByLineAndExitsZero) {
  const Stint stint;
  const Finished done = stint({"doctor"}, Millis(60'000));
  EXPECT_EQ(done.exit_code, 0) << done.out << done.err;
  for (const char* check :
       {"durability", "whole", "visible", "atomic", "clock", "timers", "wake-up", "round-trip",
        "generation", "skew", "drift", "permissions"}) {
    EXPECT_EQ(count_lines(done.out, cat("ok   ", check, " ")), 1) << check << "\n" << done.out;
  }
  EXPECT_NE(done.out.find("8 processes counted to 120, 120 acknowledged"), std::string::npos)
      << done.out;
  EXPECT_EQ(done.out.find("fail"), std::string::npos) << done.out;
}

TEST(DoctorCommand, SpeaksJson) {
  const Stint stint;
  const Finished done = stint({"doctor", "--json", "-q"}, Millis(60'000));
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.out.find(R"({"check":"atomic","level":"ok","text":)"), std::string::npos)
      << done.out;
  EXPECT_EQ(done.err, "");
}

TEST(DoctorCommand, NeedsAStoreThatCanBeReached) {
  const Stint stint;
  const Finished done = stint({"doctor", "--store", "sqlite:/proc/nowhere/x.db"});
  EXPECT_EQ(done.exit_code, 69);
  EXPECT_EQ(done.out, "");
  EXPECT_EQ(stint({"doctor", "--why", "x"}).exit_code, 2);
}

// EVIDENCE-OF: G1 G12
TEST(StoreCopyCommand, MovesTheLeasesAndClosesTheOldStore) {
  const Stint stint;
  const std::string to = cat("sqlite:", stint.dir().file("new.db"));
  const std::string from = cat("sqlite:", stint.database());
  for (int i = 0; i < 3; ++i) ASSERT_EQ(stint({"run", "r", "--", "true"}).exit_code, 0);
  const Finished moved = stint({"store", "copy", from, to});
  EXPECT_EQ(moved.exit_code, 0) << moved.err;
  const Finished old = stint({"acquire", "r"});
  EXPECT_EQ(old.exit_code, 69);
  EXPECT_NE(old.err.find("moved to"), std::string::npos) << old.err;
  EXPECT_EQ(stint({"acquire", "r", "--store", to}).out, "4\n");
}

TEST(StoreCopyCommand, IsRefusedWhileHeldUnlessToldToRevoke) {
  const Stint stint;
  const std::string to = cat("sqlite:", stint.dir().file("new.db"));
  const std::string from = cat("sqlite:", stint.database());
  Child run(stint.command({"run", "r", "--", "sleep", "60"}));
  ASSERT_TRUE(wait_until([&] { return stint.held("r"); })) << run.err();
  const Finished refused = stint({"store", "copy", from, to});
  EXPECT_EQ(refused.exit_code, 11) << refused.err;
  EXPECT_TRUE(stint.held("r"));
  EXPECT_EQ(stint({"store", "copy", from, to, "--revoke-held"}).exit_code, 2) << "without a reason";
  const Finished moved =
      stint({"store", "copy", from, to, "--revoke-held", "--why", "to a new disk"});
  EXPECT_EQ(moved.exit_code, 0) << moved.err;
  const auto exit = run.wait(Millis(10'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 75) << run.err();
  EXPECT_EQ(stint({"acquire", "r", "--store", to}).out, "3\n");
}

// Also from what can be opened only once, while a copy looks at it more than once.
// EVIDENCE-OF: G1
TEST(StoreCopyCommand, GoesFromEachKindOfFileToEach) {
  const Stint stint;
  int number = 0;
  for (const char* from_kind : {"sqlite", "dir", "log"}) {
    for (const char* to_kind : {"sqlite", "dir", "log"}) {
      const std::string from = cat(from_kind, ":", stint.dir().file(cat("from", ++number)));
      const std::string to = cat(to_kind, ":", stint.dir().file(cat("to", number)));
      ASSERT_EQ(stint({"acquire", "r", "--store", from, "--ttl", "10m"}).out, "1\n");
      EXPECT_EQ(stint({"store", "copy", from, to}).exit_code, 11) << from << " " << to;
      const Finished moved = stint({"store", "copy", from, to, "--revoke-held", "--why", "w"});
      EXPECT_EQ(moved.exit_code, 0) << from << " " << to << " " << moved.err;
      EXPECT_EQ(stint({"acquire", "r", "--store", to}).out, "3\n") << from << " " << to;
    }
  }
}

// A bound that is asked for: the oldest lines go, the newest stay.
TEST(KeepEvents, BoundsTheLedger) {
  const Stint stint;
  for (const char* kind : {"sqlite", "dir", "log"}) {
    const std::string store = cat(kind, ":", stint.dir().file(cat("kept-", kind)));
    const auto events = [&](const std::string& url) {
      for (int i = 0; i < 45; ++i) {
        EXPECT_EQ(stint({"run", "r", "--store", url, "--", "true"}).exit_code, 0);
      }
      return count_lines(stint({"events", "--json", "--store", store}).out);
    };
    const int bounded = events(store + "?keep_events=5");
    EXPECT_LT(bounded, 80) << kind;
    EXPECT_GE(bounded, 5) << kind;
    EXPECT_GE(events(store), bounded + 80) << kind << ": without a bound all are kept";
  }
}

// EVIDENCE-OF: G8
TEST(StoreCopyCommand, ParksClaimedItemsWhenToldToRevoke) {
  const Stint stint;
  const std::string to = cat("sqlite:", stint.dir().file("new.db"));
  const std::string from = cat("sqlite:", stint.database());
  ASSERT_EQ(stint({"queue", "put", "builds", "x", "--create"}).exit_code, 0);
  const std::string id = json_field(stint({"queue", "claim", "builds", "--json"}).out, "id");
  ASSERT_NE(id, "");
  const Finished refused = stint({"store", "copy", from, to});
  EXPECT_EQ(refused.exit_code, 11) << refused.err;
  EXPECT_NE(refused.err.find("1 item(s) claimed"), std::string::npos) << refused.err;
  const Finished moved =
      stint({"store", "copy", from, to, "--revoke-held", "--why", "to a new disk"});
  EXPECT_EQ(moved.exit_code, 0) << moved.err;
  const std::string item = stint({"queue", "show", id, "--json", "--store", to}).out;
  EXPECT_EQ(json_field(item, "state"), "parked") << item;
  // The worker's result is not taken: neither where it was, nor where it is now.
  EXPECT_EQ(stint({"queue", "complete", id, "--epoch", "1"}).exit_code, 69);
  EXPECT_EQ(stint({"queue", "complete", id, "--epoch", "1", "--store", to}).exit_code, 12);
}

// It is made once nothing is in the way; a TO that is there stays as it was.
TEST(StoreCopyCommand, RefusedLeavesNothingBehind) {
  const Stint stint;
  const std::string from = cat("sqlite:", stint.database());
  const auto copied_to = [&](const std::string& scheme) {
    const std::string path = stint.dir().file("new");
    const Finished done = stint({"store", "copy", from, cat(scheme, ":", path)});
    EXPECT_EQ(files_like(stint.dir(), "new"), 0) << scheme << ": " << done.err;
    return done;
  };
  ASSERT_EQ(stint({"queue", "put", "builds", "x", "--create"}).exit_code, 0);
  EXPECT_EQ(copied_to("dir").exit_code, 1) << "items are not moved there";
  const std::string id = json_field(stint({"queue", "claim", "builds", "--json"}).out, "id");
  const Finished claimed = copied_to("sqlite");
  EXPECT_EQ(claimed.exit_code, 11) << claimed.err;
  ASSERT_EQ(stint({"queue", "complete", id, "--epoch", "1"}).exit_code, 0);
  ASSERT_EQ(stint({"acquire", "r", "--ttl", "10m"}).out, "1\n");
  for (const char* scheme : {"sqlite", "log"}) {
    const Finished held = copied_to(scheme);
    EXPECT_EQ(held.exit_code, 11) << held.err;
    EXPECT_NE(held.err.find("'r' is held"), std::string::npos) << held.err;
  }
  EXPECT_EQ(stint({"store", "copy", cat("sqlite:", stint.dir().file("none")),
                   cat("sqlite:", stint.dir().file("new"))})
                .exit_code,
            69);
  EXPECT_EQ(files_like(stint.dir(), "new"), 0);
  // A TO that cannot be used revokes nothing.
  EXPECT_EQ(stint({"store", "copy", from, "sqlite:/proc/nowhere/x.db", "--revoke-held", "--why",
                   "to a new disk"})
                .exit_code,
            69);
  EXPECT_TRUE(stint.held("r"));
}

TEST(StoreCopyCommand, RefusesBadWords) {
  const Stint stint;
  EXPECT_EQ(stint({"store", "copy", "sqlite:/a"}).exit_code, 2);
  EXPECT_EQ(stint({"store", "paint", "a", "b"}).exit_code, 2);
  const Finished secret = stint({"store", "copy", "sqlite:/a", "postgres://u:hush@h/d"});
  EXPECT_EQ(secret.exit_code, 2);
  EXPECT_EQ(secret.err.find("hush"), std::string::npos) << secret.err;
  ASSERT_EQ(stint({"ls"}).exit_code, 0);
  const std::string same = cat("sqlite:", stint.database());
  EXPECT_EQ(stint({"store", "copy", same, same}).exit_code, 2);
}

}  // namespace
}  // namespace stint::test
