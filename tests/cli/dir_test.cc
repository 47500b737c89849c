// The program on a dir: store: URLs, refusals in one line, runs, hand-off, revocation, clocks.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>

#include "base/text.h"
#include "os/pause.h"
#include "tests/cli/stint.h"
#include "tests/support/mounts.h"

namespace stint::test {
namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

class OnADirectory : public ::testing::Test {
 protected:
  OnADirectory() { stint.use_store(url()); }
  std::string path() const { return stint.dir().file("shared"); }
  std::string url(const std::string& options = {}) const { return cat("dir:", path(), options); }
  // One line on stderr, and nothing on stdout.
  void refused(const std::string& store, int code, const std::string& words) {
    const Finished said = stint({"acquire", "r", "--store", store});
    EXPECT_EQ(said.exit_code, code) << said.err;
    EXPECT_EQ(said.out, "");
    EXPECT_EQ(count_lines(said.err), 1) << said.err;
    EXPECT_NE(said.err.find(words), std::string::npos) << said.err;
  }
  Stint stint;
};

TEST_F(OnADirectory, BadUrlsAreRefusedInOneLine) {
  refused("dir:", 2, "needs a path");
  refused(url("?polls=1s"), 2, "unknown option");
  refused(url("?poll=often"), 2, "");
  refused(url("?view=perhaps"), 2, "view is on or off");
  refused(url("?timeout=0s"), 2, "");
  EXPECT_FALSE(fs::exists(path()));
}

TEST_F(OnADirectory, WhatIsNoStoreIsRefusedInOneLineAndLeftAlone) {
  write_text(stint.dir().file("file"), "text");
  refused(cat("dir:", stint.dir().file("file")), 69, "not a directory");
  fs::create_directory(path());
  write_text(path() + "/thesis.tex", "text");
  refused(url(), 69, "thesis.tex");
  fs::create_directory(path() + "/log");
  write_text(path() + "/log/access.log", "text");
  refused(url(), 69, "not the log of a Stint store");
  EXPECT_EQ(read_text(path() + "/log/access.log"), "text");
}

TEST_F(OnADirectory, AMissingOneIsNotMadeByWhoPinsAGeneration) {
  refused(url("?generation=0123456789abcdef0123456789abcdef"), 69, "no store at");
  EXPECT_FALSE(fs::exists(path()));
}

TEST_F(OnADirectory, MissingPermissionIs77) {
  if (const std::string why = Mount::missing(); !why.empty()) GTEST_SKIP() << why;
  fs::create_directory(path());
  const Mount small({.type = "tmpfs", .target = path(), .options = "size=4m"});
  ASSERT_TRUE(small.ok());
  ASSERT_EQ(stint({"acquire", "a", "--ttl", "1h"}).exit_code, 0);
  ASSERT_TRUE(small.remount(true));
  refused(url(), 77, "Read-only");
}

TEST_F(OnADirectory, AFullDiskIsOneLineAndLosesNothing) {
  if (const std::string why = Mount::missing(); !why.empty()) GTEST_SKIP() << why;
  fs::create_directory(path());
  const Mount small({.type = "tmpfs", .target = path(), .options = "size=1m"});
  ASSERT_TRUE(small.ok());
  ASSERT_EQ(stint({"acquire", "a", "--ttl", "1h"}).exit_code, 0);
  const Finished fill = run({.argv = {"sh", "-c", cat("cat /dev/zero > ", path(), "/.full")}});
  const Finished said = stint({"acquire", "b"});
  EXPECT_EQ(said.exit_code, 69) << said.err;
  EXPECT_EQ(count_lines(said.err), 1) << said.err;
  EXPECT_EQ(stint.lease("a", "token"), "1");
  fs::remove(path() + "/.full");
  EXPECT_EQ(stint({"acquire", "b"}).out, "1\n");
}

TEST_F(OnADirectory, RunsHandsOnAndRevokes) {
  EXPECT_EQ(stint({"run", "r", "--", "true"}).exit_code, 0);
  const std::string flag = stint.dir().file("flag");
  Child first(stint.command(
      {"run", "r", "--ttl", "5s", "--", "sh", "-c", cat("touch ", flag, "; sleep 1")}));
  ASSERT_TRUE(wait_until([&] { return fs::exists(flag); }));
  EXPECT_EQ(stint({"run", "r", "--on-held", "fail", "--", "true"}).exit_code, 11);
  const Finished next = stint({"run", "r", "--on-held", "wait", "--", "true"});
  EXPECT_EQ(next.exit_code, 0) << next.err;
  EXPECT_LT(next.took, milliseconds(5000));
  fs::remove(flag);
  Child held(stint.command(
      {"run", "r", "--ttl", "5s", "--", "sh", "-c", cat("touch ", flag, "; sleep 60")}));
  ASSERT_TRUE(wait_until([&] { return fs::exists(flag); }));
  const std::string token = stint.lease("r", "token");
  EXPECT_EQ(token, "4");
  ASSERT_EQ(stint({"revoke", "r", "--token", token, "--why", "test"}).exit_code, 0);
  const auto exit = held.wait(milliseconds(10'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 75);
}

TEST_F(OnADirectory, ViewOffKeepsNoReadableCopy) {
  ASSERT_EQ(stint({"acquire", "r", "--store", url("?view=off")}).exit_code, 0);
  EXPECT_FALSE(fs::exists(path() + "/records"));
  ASSERT_EQ(stint({"acquire", "s"}).exit_code, 0);
  EXPECT_NE(read_text(path() + "/records/own/s").find("\"token\":1"), std::string::npos);
}

// On another machine nobody hears the wake-up: here its file is taken away from under the waiter.
TEST_F(OnADirectory, PollWakesAWaiterWhomNobodyTells) {
  ASSERT_EQ(stint({"acquire", "r", "--ttl", "1h"}).exit_code, 0);
  const auto wait_with = [&](const std::string& options) {
    auto waiting = std::make_unique<Child>(
        stint.command({"run", "r", "--on-held", "wait", "--store", url(options), "--", "true"}));
    EXPECT_TRUE(wait_until([&] {
      return waiting->err().find("waiting") != std::string::npos &&
             state_of(waiting->pid()) == 'S' && fs::exists(path() + "/wake");
    }));
    return waiting;
  };
  const auto deaf = wait_with("");
  const auto polling = wait_with("?poll=200ms");
  os::pause_for(milliseconds(300));
  fs::remove_all(path() + "/wake");
  ASSERT_EQ(stint({"release", "r", "--token", "1"}).exit_code, 0);
  const auto exit = polling->wait(milliseconds(5000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 0);
  EXPECT_TRUE(deaf->running()) << "the default polls on a local disk";
}

TEST_F(OnADirectory, AWaiterMakesNoSystemCallsOnALocalDisk) {
  ASSERT_EQ(stint({"acquire", "r", "--ttl", "60s"}).exit_code, 0);
  Child waiting(stint.command({"run", "r", "--on-held", "wait", "--", "true"}));
  ASSERT_TRUE(wait_until([&] {
    return waiting.err().find("waiting") != std::string::npos && state_of(waiting.pid()) == 'S';
  }));
  const Quiet quiet = makes_no_call(waiting.pid(), stint.dir().file("trace"));
  if (!quiet.untraceable.empty()) GTEST_SKIP() << quiet.untraceable;
  EXPECT_TRUE(quiet.kept) << quiet.trace;
}

// EVIDENCE-OF: G12
TEST_F(OnADirectory, ARestoredBackupIsNoticedAndTokensGoOnAfterTheOperatorsWord) {
  ASSERT_EQ(stint({"run", "r", "--", "true"}).exit_code, 0);
  const std::string backup = stint.dir().file("backup");
  fs::copy(path(), backup, fs::copy_options::recursive);
  ASSERT_EQ(stint({"run", "r", "--", "true"}).exit_code, 0);
  const auto restore = [&] {
    for (const auto& entry : fs::directory_iterator(path() + "/log")) fs::remove(entry.path());
    fs::copy(backup + "/log", path() + "/log");
  };
  std::uint64_t highest = 2;
  for (int i = 0; i < 2; ++i) {
    restore();
    // In place: the directory is the same, so only the anchor tells.
    refused(url(), 69, "restore.md");
    const Finished word = stint({"doctor", "--accept-restored", "--why", "test"});
    ASSERT_EQ(word.exit_code, 0) << word.err;
    const auto token = parse_digits(trim(stint({"acquire", "r", "--ttl", "1h"}).out));
    ASSERT_TRUE(token);
    EXPECT_GT(*token, highest) << "a token came twice";
    highest = *token;
  }
}

// EVIDENCE-OF: G12
TEST_F(OnADirectory, ACopyAtTheSamePlaceIsRefusedAlsoToWhoRemembersNothing) {
  ASSERT_EQ(stint({"run", "r", "--", "true"}).exit_code, 0);
  fs::rename(path(), stint.dir().file("moved"));
  fs::copy(stint.dir().file("moved"), path(), fs::copy_options::recursive);
  fs::remove_all(stint.dir().file("state"));
  refused(url(), 69, "copied or restored");
  ASSERT_EQ(stint({"doctor", "--accept-restored", "--why", "test"}).exit_code, 0);
  EXPECT_EQ(stint({"run", "r", "--", "true"}).exit_code, 0);
}

// EVIDENCE-OF: G4
TEST_F(OnADirectory, AClientWhoseClockIsHoursOffChangesNothing) {
  const char* library = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1";
  if (::access(library, R_OK) != 0) GTEST_SKIP() << "libfaketime is not installed: faketime";
  for (const char* by : {"+5h", "-5h"}) {
    const auto there = [&](std::vector<std::string> words) {
      Command command = stint.command(std::move(words));
      command.env.emplace_back("LD_PRELOAD", cat(REAL_TIMERS, ":", library));
      command.env.emplace_back("FAKETIME", by);
      command.env.emplace_back("FAKETIME_DONT_FAKE_MONOTONIC", "1");
      command.env.emplace_back("NO_FAKE_STAT", "1");
      return run(command);
    };
    const std::string name = cat("r", by);
    const MonoTime sent = now();
    ASSERT_EQ(there({"acquire", name, "--ttl", "2s"}).exit_code, 0);
    const MonoTime granted = now();
    EXPECT_EQ(stint({"acquire", name}).exit_code, 11);
    EXPECT_EQ(there({"acquire", name}).exit_code, 11);
    EXPECT_LE(parse_digits(stint.lease(name, "remaining_ms")).value_or(9999), 2000U);
    ASSERT_EQ(stint({"acquire", name, "--wait", "20s", "--ttl", "2s"}).exit_code, 0);
    EXPECT_GE(now() - sent, milliseconds(2000)) << "early";
    EXPECT_LE(now() - granted, milliseconds(2000 + 2500)) << "late";
    EXPECT_EQ(there({"acquire", name}).exit_code, 11);
  }
}

// Two machines use a store for the first time: on NFS the one that comes second remembers for a
// while that there was no log. Here its first two looks for it are told so.
TEST_F(OnADirectory, ALogThatAnotherMachineHasJustMadeIsSeenLateAndNotMissing) {
  if (find_program("strace").empty()) GTEST_SKIP() << "strace is not installed";
  ASSERT_EQ(stint({"run", "r", "--", "true"}).exit_code, 0);
  const std::string trace = stint.dir().file("trace");
  // Which of the opened files are the log, counted from one; none is found for these looks.
  const auto looks = [&](const std::string& injected) {
    Command command = stint.command({"show", "r", "--json"});
    std::vector<std::string> before = {"strace", "-f", "-e", "trace=openat", "-o", trace};
    if (!injected.empty()) {
      before.insert(before.end(), {"-e", cat("inject=openat:error=ENOENT:when=", injected)});
    }
    command.argv.insert(command.argv.begin(), before.begin(), before.end());
    const Finished done = run(command);
    EXPECT_EQ(done.exit_code, 0) << done.err;
    EXPECT_EQ(json_field(done.out, "token"), "1") << done.out;
    std::vector<std::size_t> out;
    std::size_t calls = 0;
    const std::string traced = read_text(trace);
    for (const std::string_view line : split(traced, '\n')) {
      if (line.find("openat(") == line.npos) continue;
      ++calls;
      if (line.find("\"log\"") != line.npos) out.push_back(calls);
    }
    return out;
  };
  const auto plain = looks("");
  ASSERT_EQ(plain.size(), 1U);
  const auto once = looks(cat(plain[0]));
  ASSERT_EQ(once.size(), 2U);
  const auto twice = looks(cat(once[0], "..", once[1], '+', once[1] - once[0]));
  EXPECT_EQ(twice.size(), 3U);
}

}  // namespace
}  // namespace stint::test
