// Clocks that are stepped, other namespaces, reboots, other machines, restored copies: no lease
// ends early or lasts longer, and no token comes twice.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "base/text.h"
#include "tests/cli/faketime.h"
#include "tests/cli/stint.h"
#include "tests/support/asleep.h"
#include "tests/support/mounts.h"

namespace stint::test {
namespace {

using std::chrono::milliseconds;

constexpr const char* kBootId = "/proc/sys/kernel/random/boot_id";
constexpr const char* kMachineId = "/etc/machine-id";

// ---- Stepped wall clocks

class SteppedClock : public ::testing::TestWithParam<const char*> {};

TEST_P(SteppedClock, IsWallTimeAlone) {
  SKIP_WITHOUT_FAKETIME();
  const char* script =
      "import time; print(int(time.time()), int(time.clock_gettime(time.CLOCK_BOOTTIME)))";
  const Finished real = run({.argv = {"python3", "-c", script}});
  const Finished faked = run(stepped({.argv = {"python3", "-c", script}}, GetParam()));
  const auto number = [](const Finished& said, std::size_t column) {
    const auto words = split(trim(said.out), ' ');
    return static_cast<std::int64_t>(parse_digits(words[column]).value_or(0));
  };
  EXPECT_GE(std::abs(number(real, 0) - number(faked, 0)), 3500) << "the clock is not stepped";
  EXPECT_LE(std::abs(number(real, 1) - number(faked, 1)), 60) << "CLOCK_BOOTTIME is not real";
}

// EVIDENCE-OF: G4
TEST_P(SteppedClock, NeitherEndsALeaseEarlyNorProlongsIt) {
  SKIP_WITHOUT_FAKETIME();
  const Stint stint;
  const auto there = [&](std::vector<std::string> words) {
    return run(stepped(stint.command(std::move(words)), GetParam()));
  };
  ASSERT_EQ(there({"run", "r", "--", "true"}).exit_code, 0);
  const MonoTime sent = now();
  ASSERT_EQ(stint({"acquire", "r", "--ttl", "1s"}).exit_code, 0);
  const MonoTime granted = now();
  EXPECT_EQ(there({"acquire", "r"}).exit_code, 11);
  const std::string shown = there({"show", "r", "--json"}).out;
  EXPECT_EQ(json_field(shown, "held"), "true") << shown;
  EXPECT_LE(parse_digits(json_field(shown, "remaining_ms")).value_or(9999), 1000U) << shown;
  const Finished next = there({"acquire", "r", "--wait", "20s", "--ttl", "1s"});
  const MonoTime taken = now();
  ASSERT_EQ(next.exit_code, 0) << next.err;
  EXPECT_GE(taken - sent, milliseconds(1000)) << "early";
  EXPECT_LE(taken - granted, milliseconds(1000 + 1500)) << "late";
  // And the other way: granted and renewed under the stepped clock, seen by the real one.
  EXPECT_EQ(there({"renew", "r", "--token", std::string(trim(next.out))}).exit_code, 0);
  EXPECT_LE(parse_digits(stint.lease("r", "remaining_ms")).value_or(9999), 1000U);
  EXPECT_EQ(stint({"acquire", "r"}).exit_code, 11);
  EXPECT_EQ(stint({"acquire", "r", "--wait", "20s"}).exit_code, 0);
  EXPECT_LE(now() - taken, milliseconds(1000 + 2500)) << "prolonged";
}

Nanos step_of(std::string_view text) {
  const auto hours = static_cast<int>(parse_digits(text.substr(1, text.size() - 2)).value_or(0)) *
                     (text.ends_with('y') ? 365 * 24 : 1);
  return std::chrono::hours(text.starts_with('-') ? -hours : hours);
}

// In played time, so that it hangs on the clocks alone and not on how long a disk takes to sync.
// EVIDENCE-OF: G4 G6
TEST_P(SteppedClock, UnderARunningHolderChangesNothing) {
  const Stint stint;
  Machine machine(stint.dir().file("asleep"));
  const auto there = [&](std::vector<std::string> words) {
    return machine.here(stint.command(std::move(words)), ASLEEP);
  };
  const auto shown = [&](const char* field) {
    return json_field(run(there({"show", "r", "--json"})).out, field);
  };
  const std::string stop = stint.dir().file("stop");
  Child holder(there({"run", "r", "--ttl", "60s", "--", "sh", "-c",
                      cat("while [ ! -e ", stop, " ]; do sleep 0.02; done")}));
  ASSERT_TRUE(wait_until([&] { return shown("held") == "true"; })) << holder.err();
  const auto at_first = static_cast<std::int64_t>(parse_digits(shown("renewed_at_ms")).value_or(0));
  machine.step_wall(step_of(GetParam()));
  // For three ttl after the step it is renewed again and again, each time when it is due.
  for (int i = 0; i < 6; ++i) {
    machine.suspend(std::chrono::seconds(30));
    ASSERT_TRUE(wait_until([&] {
      return parse_digits(shown("remaining_ms")).value_or(0) > 50'000;
    })) << holder.err();
    EXPECT_LE(parse_digits(shown("remaining_ms")).value_or(99'999), 60'000U) << "prolonged";
  }
  const auto at_last = static_cast<std::int64_t>(parse_digits(shown("renewed_at_ms")).value_or(0));
  EXPECT_GE(std::abs(at_last - at_first), 3'400'000) << "the clock was not stepped";
  EXPECT_EQ(run(there({"acquire", "r"})).exit_code, 11);
  write_text(stop, "x");
  const auto exit = holder.wait(milliseconds(10'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 0) << holder.err();
  EXPECT_EQ(shown("token"), "1");
}

INSTANTIATE_TEST_SUITE_P(By, SteppedClock, ::testing::Values("+1h", "-1h", "+10y", "-10y"),
                         [](const auto& by) {
                           const std::string_view text = by.param;
                           return cat(text.front() == '+' ? "Ahead" : "Back", text.substr(1));
                         });

// ---- Namespaces, boots, machines

#define SKIP_WITHOUT_MOUNTS() \
  if (const std::string why = Mount::missing(); !why.empty()) GTEST_SKIP() << why

// Another boot id or machine id for everything that the test starts, while it lives.
class Identity {
 public:
  Identity(const char* where, const std::string& text) : file_(folder_.file("id")) {
    write_text(file_, text + "\n");
    mount_ = std::make_unique<Mount>(MountPlan{.source = file_, .target = where});
    EXPECT_TRUE(mount_->ok()) << where;
  }

 private:
  TempDir folder_;
  std::string file_;
  std::unique_ptr<Mount> mount_;
};

std::string boot(int number) { return cat("00000000-0000-4000-8000-00000000000", number); }

std::uint64_t remaining(const Stint& stint, const std::string& resource) {
  return parse_digits(stint.lease(resource, "remaining_ms")).value_or(0);
}

// EVIDENCE-OF: G4
TEST(AnotherTimeNamespace, IsRefused) {
  if (run({.argv = {"unshare", "-T", "true"}}).exit_code != 0) {
    GTEST_SKIP() << "no time namespace of its own: unshare -T is not allowed";
  }
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "r"}).exit_code, 0);
  for (const char* verb : {"acquire", "show"}) {
    Command command = stint.command({verb, "r"});
    const std::vector<std::string> inside = {"unshare", "-T", "--boottime", "1000"};
    command.argv.insert(command.argv.begin(), inside.begin(), inside.end());
    const Finished there = run(command);
    EXPECT_EQ(there.exit_code, 69) << verb;
    EXPECT_EQ(there.out, "");
    EXPECT_NE(there.err.find("time namespace"), std::string::npos) << there.err;
  }
  EXPECT_EQ(stint.lease("r", "token"), "1");
}

// EVIDENCE-OF: G3 G4
TEST(Reboot, ProlongsOnceWhatWasRunningAndNothingElse) {
  SKIP_WITHOUT_MOUNTS();
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "over", "--ttl", "100ms"}).exit_code, 0);
  ASSERT_TRUE(wait_until([&] { return !stint.held("over"); }));
  ASSERT_EQ(stint({"acquire", "running", "--ttl", "20s"}).exit_code, 0);
  ASSERT_TRUE(wait_until([&] { return remaining(stint, "running") < 18'500; }));
  {
    const Identity rebooted(kBootId, boot(1));
    EXPECT_GT(remaining(stint, "running"), 19'000U) << "its full ttl again";
    EXPECT_FALSE(stint.held("over"));
    EXPECT_EQ(stint({"acquire", "running"}).exit_code, 11);
    EXPECT_EQ(stint.events({"\"prolonged\""}), 1);
    ASSERT_TRUE(wait_until([&] { return remaining(stint, "running") < 18'500; })) << "once only";
    EXPECT_EQ(stint({"renew", "running", "--token", "1"}).exit_code, 0);
    EXPECT_EQ(stint({"acquire", "over", "--ttl", "100ms"}).out, "2\n");
    EXPECT_EQ(stint.events({"\"prolonged\""}), 1);
    EXPECT_EQ(stint({"release", "running", "--token", "1"}).exit_code, 0);
    ASSERT_TRUE(wait_until([&] { return !stint.held("over"); }));
    ASSERT_EQ(stint({"run", "other", "--", "true"}).exit_code, 0);
  }
  const Identity again(kBootId, boot(2));
  EXPECT_EQ(stint({"acquire", "running"}).out, "2\n");
  EXPECT_EQ(stint({"acquire", "over"}).out, "3\n");
  EXPECT_EQ(stint.events({"\"prolonged\""}), 1) << "nothing ran at the second reboot";
}

// A real boot starts its clock at zero: what is left must not be counted from the old one.
TEST(Reboot, WhoseClockStartsAnewGivesTheTtlAndNoMore) {
  SKIP_WITHOUT_MOUNTS();
  const std::string text = read_text("/proc/uptime");
  const auto seconds = parse_digits(std::string_view(text).substr(0, text.find('.')));
  const auto uptime = static_cast<std::int64_t>(seconds.value_or(0));
  const std::vector<std::string> inside = {"unshare", "-T", cat("--boottime=", 5 - uptime)};
  Command probe{.argv = inside};
  probe.argv.emplace_back("true");
  if (uptime < 60 || run(probe).exit_code != 0) GTEST_SKIP() << "no clock can be set back here";
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "r", "--ttl", "2s"}).exit_code, 0);
  const Identity rebooted(kBootId, boot(1));
  const std::string& s = stint.binary();
  Command script = stint.command({});
  script.argv = inside;
  for (const std::string& word :
       {std::string("sh"), std::string("-c"),
        cat(s, " show r --json && ", s, " acquire r; echo $?; ", s, " acquire r --wait 20s")}) {
    script.argv.push_back(word);
  }
  const Finished there = run(script);
  const std::string shown(split(there.out, '\n').front());
  EXPECT_EQ(json_field(shown, "held"), "true") << there.out << there.err;
  EXPECT_LE(parse_digits(json_field(shown, "remaining_ms")).value_or(9999), 2000U) << shown;
  EXPECT_NE(there.out.find("\n11\n2\n"), std::string::npos) << there.out << there.err;
  EXPECT_LT(there.took, milliseconds(2000 + 2500));
}

// EVIDENCE-OF: G1 G12
TEST(AnotherMachine, IsRefusedUntilAnOperatorHasSpoken) {
  SKIP_WITHOUT_MOUNTS();
  const Stint stint;
  for (int i = 0; i < 3; ++i) ASSERT_EQ(stint({"run", "r", "--", "true"}).exit_code, 0);
  std::uint64_t there_issued = 0;
  {
    const Identity machine(kMachineId, "0123456789abcdef0123456789abcdef");
    const Identity booted(kBootId, boot(1));
    for (const char* verb : {"acquire", "show"}) {
      const Finished refused = stint({verb, "r"});
      EXPECT_EQ(refused.exit_code, 69) << verb;
      EXPECT_NE(refused.err.find("copied from another machine"), std::string::npos) << refused.err;
    }
    ASSERT_EQ(stint({"doctor", "--accept-restored", "--why", "moved to a new host"}).exit_code, 0);
    const Finished taken = stint({"acquire", "r"});
    EXPECT_EQ(taken.exit_code, 0) << taken.err;
    there_issued = parse_digits(trim(taken.out)).value_or(0);
    EXPECT_GT(there_issued, 3U);
    EXPECT_EQ(stint.events({"\"recovered\"", "moved to a new host"}), 1);
  }
  EXPECT_EQ(stint({"acquire", "r"}).exit_code, 69) << "the file has moved on";
  ASSERT_EQ(stint({"doctor", "--accept-restored", "--why", "moved back"}).exit_code, 0);
  ASSERT_TRUE(wait_until([&] {
    const Finished shut = stint({"revoke", "r", "--token", cat(there_issued), "--why", "test"});
    return shut.exit_code == 0;
  }));
  const Finished back = stint({"acquire", "r"});
  EXPECT_GT(parse_digits(trim(back.out)).value_or(0), there_issued) << back.err;
}

// ---- An older copy of the file

void copy_file(const std::string& from, const std::string& to) {
  std::filesystem::remove(to);
  if (std::filesystem::exists(from)) std::filesystem::copy_file(from, to);
}

class OlderCopy : public ::testing::TestWithParam<bool> {};

// EVIDENCE-OF: G1 G12
TEST_P(OlderCopy, IsNoticedByTheAnchorAndNoTokenComesTwice) {
  const bool with_log = GetParam();
  const Stint stint;
  const std::string db = stint.database();
  const std::string backup = stint.dir().file("backup");
  ASSERT_EQ(stint({"run", "r", "--", "true"}).exit_code, 0);
  // Without its log a backup is whole only if the log was copied back before.
  if (!with_log) {
    ASSERT_EQ(run({.argv = {"sqlite3", db, "PRAGMA wal_checkpoint(TRUNCATE)"}}).exit_code, 0);
  }
  copy_file(db, backup);
  copy_file(db + "-wal", backup + "-wal");
  for (int i = 0; i < 3; ++i) ASSERT_EQ(stint({"run", "r", "--", "true"}).exit_code, 0);
  ASSERT_EQ(stint.lease("r", "token"), "4");
  for (const char* verb : {"acquire", "show"}) {
    copy_file(backup, db);
    copy_file(with_log ? backup + "-wal" : "/nonexistent", db + "-wal");
    std::filesystem::remove(db + "-shm");
    const Finished refused = stint({verb, "r"});
    EXPECT_EQ(refused.exit_code, 69) << verb;
    EXPECT_NE(refused.err.find("went back in time"), std::string::npos) << refused.err;
  }
  ASSERT_EQ(stint({"doctor", "--accept-restored", "--why", "restored"}).exit_code, 0);
  const Finished first = stint({"acquire", "r", "--json"});
  EXPECT_GT(parse_digits(json_field(first.out, "token")).value_or(0), 4U) << first.err;
  // The same backup a second time: higher again.
  copy_file(backup, db);
  copy_file(with_log ? backup + "-wal" : "/nonexistent", db + "-wal");
  std::filesystem::remove(db + "-shm");
  EXPECT_EQ(stint({"acquire", "r"}).exit_code, 69);
  ASSERT_EQ(stint({"doctor", "--accept-restored", "--why", "restored again"}).exit_code, 0);
  const Finished second = stint({"acquire", "r", "--json"});
  EXPECT_GT(parse_digits(json_field(second.out, "token")).value_or(0),
            parse_digits(json_field(first.out, "token")).value_or(0))
      << second.err;
}

INSTANTIATE_TEST_SUITE_P(Copied, OlderCopy, ::testing::Bool(), [](const auto& with_log) {
  return with_log.param ? "WithItsLog" : "WithoutItsLog";
});

}  // namespace
}  // namespace stint::test
