// The store's file in trouble: full disk, read-only, locked by a stopped process, damaged, deleted,
// on a file system that cannot lock. Never a false success, never a token twice, nothing told is
// lost.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "tests/cli/stint.h"
#include "tests/support/mounts.h"

namespace stint::test {
namespace {

using std::chrono::milliseconds;

#define SKIP_WITHOUT_MOUNTS() \
  if (const std::string why = Mount::missing(); !why.empty()) GTEST_SKIP() << why

#define SKIP_WITHOUT_STRACE() \
  if (find_program("strace").empty()) GTEST_SKIP() << "strace is not installed"

std::string mount_point(const Stint& stint) {
  const std::string path = stint.dir().file("state");
  std::filesystem::create_directories(path);
  return path;
}

std::uint64_t token_of(const Finished& acquired) {
  return parse_digits(trim(acquired.out)).value_or(0);
}

// An answer of a store in trouble: done, unreachable, or unknown.
void expect_honest(const Finished& done) {
  EXPECT_TRUE(done.exit_code == 0 || done.exit_code == 14 || done.exit_code == 69)
      << done.exit_code.value_or(-1) << " " << done.signal << " " << done.err;
}

// ---- A full disk

class SmallDisk {
 public:
  explicit SmallDisk(const Stint& stint)
      : path_(mount_point(stint)),
        mount_({.type = "tmpfs", .target = path_, .options = "size=1m"}) {}
  bool ok() const { return mount_.ok(); }

  // Leaves this many free pages.
  void fill(std::size_t free_pages) {
    const std::size_t pages = free();
    if (pages <= free_pages) return;
    std::ofstream file(path_ + "/filler", std::ios::app);
    file << std::string((pages - free_pages) * kPage, 'x');
  }
  void empty() { std::filesystem::remove(path_ + "/filler"); }
  std::size_t free() const {
    struct statvfs fs {};
    ::statvfs(path_.c_str(), &fs);
    return fs.f_bavail * fs.f_frsize / kPage;
  }

 private:
  static constexpr std::size_t kPage = 4096;
  std::string path_;
  Mount mount_;
};

// The first use on a full disk leaves nothing behind that refuses the second.
TEST(FullDisk, AtTheFirstUse) {
  SKIP_WITHOUT_MOUNTS();
  int refused = 0;
  for (std::size_t pages = 0; pages <= 30; ++pages) {
    const Stint stint;
    SmallDisk disk(stint);
    ASSERT_TRUE(disk.ok());
    disk.fill(pages);
    const Finished first = stint({"acquire", "r", "--ttl", "1h"});
    expect_honest(first);
    refused += first.exit_code == 0 ? 0 : 1;
    disk.empty();
    const Finished shown = stint({"show", "r", "--json"});
    const bool held = json_field(shown.out, "held") == "true";
    EXPECT_TRUE(shown.exit_code == 0 || first.exit_code != 0) << shown.err;
    if (first.exit_code == 0) {
      EXPECT_TRUE(held) << "a false success";
    }
    if (first.exit_code == 69) {
      EXPECT_FALSE(held) << "it may have happened: 14";
    }
    const Finished other = stint({"acquire", "other"});
    EXPECT_EQ(other.exit_code, 0) << "with " << pages << " free pages before: " << other.err;
  }
  EXPECT_GT(refused, 1) << "the disk was never full";
}

// EVIDENCE-OF: G1 G11
TEST(FullDisk, EndsNoLeaseAndRepeatsNoToken) {
  SKIP_WITHOUT_MOUNTS();
  const Stint stint;
  SmallDisk disk(stint);
  ASSERT_TRUE(disk.ok());
  ASSERT_EQ(stint({"acquire", "kept", "--ttl", "1h"}).exit_code, 0);
  std::uint64_t highest = 0;
  for (std::size_t pages = 0; pages <= 20; ++pages) {
    disk.fill(pages);
    ASSERT_LE(disk.free(), pages);
    const Finished got = stint({"acquire", "r", "--ttl", "1h"});
    const Finished renewed = stint({"renew", "kept", "--token", "1", "--ttl", "1h"});
    disk.empty();
    expect_honest(got);
    expect_honest(renewed);
    EXPECT_TRUE(stint.held("kept")) << "an acknowledged grant is lost";
    const std::uint64_t stands = parse_digits(stint.lease("r", "token")).value_or(0);
    const bool held = stint.held("r");
    if (got.exit_code == 0) {
      EXPECT_TRUE(held && stands == token_of(got)) << "a false success with " << pages << " pages";
      EXPECT_GT(token_of(got), highest);
      highest = token_of(got);
    }
    if (got.exit_code == 69) {
      EXPECT_FALSE(held) << "it may have happened: 14";
    }
    if (held) {
      EXPECT_EQ(stint({"revoke", "r", "--token", cat(stands), "--why", "test"}).exit_code, 0);
    }
  }
  EXPECT_GT(token_of(stint({"acquire", "r"})), highest);
}

TEST(FullDisk, AReleaseIsTrueOrNotDone) {
  SKIP_WITHOUT_MOUNTS();
  const Stint stint;
  SmallDisk disk(stint);
  ASSERT_TRUE(disk.ok());
  for (std::size_t pages = 0; pages <= 12; pages += 2) {
    const Finished got = stint({"acquire", "r", "--ttl", "1h"});
    ASSERT_EQ(got.exit_code, 0) << got.err;
    disk.fill(pages);
    const Finished released = stint({"release", "r", "--token", cat(token_of(got))});
    disk.empty();
    expect_honest(released);
    if (released.exit_code == 0) {
      EXPECT_FALSE(stint.held("r")) << "a false success";
    }
    EXPECT_EQ(stint({"release", "r", "--token", cat(token_of(got))}).exit_code, 0);
  }
}

// ---- Read-only, refused, locked

TEST(ReadOnlyDisk, RefusesAndGoesOnAfterwards) {
  SKIP_WITHOUT_MOUNTS();
  const Stint stint;
  const std::string path = mount_point(stint);
  const Mount disk({.type = "tmpfs", .target = path, .options = "size=4m"});
  ASSERT_TRUE(disk.ok());
  ASSERT_EQ(stint({"acquire", "kept", "--ttl", "1h"}).exit_code, 0);
  ASSERT_TRUE(disk.remount(true));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"acquire", "r"},
        {"renew", "kept", "--token", "1"},
        {"release", "kept", "--token", "1"},
        {"run", "r", "--", "touch", stint.dir().file("ran")}}) {
    const Finished done = stint(words);
    EXPECT_EQ(done.exit_code, 69) << words.front() << done.err;
    EXPECT_EQ(done.out, "");
  }
  EXPECT_FALSE(std::filesystem::exists(stint.dir().file("ran")));
  EXPECT_NE(stint({"acquire", "r"}).err.find("read-only"), std::string::npos);
  ASSERT_TRUE(disk.remount(false));
  EXPECT_TRUE(stint.held("kept"));
  EXPECT_EQ(stint({"acquire", "r"}).out, "1\n");
}

// A store of files that belongs to somebody else, or would have to be made where only others may:
// the same answer on each of them. Root's own right to pass over modes is taken away for it.
TEST(ForbiddenFiles, AreDeniedOnEveryStoreOfFiles) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root, to be without its rights";
  if (find_program("setpriv").empty()) GTEST_SKIP() << "setpriv is not installed";
  namespace fs = std::filesystem;
  const Stint stint;
  const fs::path folder = stint.dir().file("folder");
  fs::create_directory(folder);
  const auto expect_denied = [&](const std::string& url) {
    Command command = stint.command({"acquire", "new", "--store", url});
    command.argv.insert(command.argv.begin(),
                        {"setpriv", "--inh-caps=-dac_override,-dac_read_search",
                         "--bounding-set=-dac_override,-dac_read_search"});
    const Finished said = run(std::move(command));
    EXPECT_EQ(said.exit_code, 77) << url << ": " << said.err;
    EXPECT_EQ(count_lines(said.err), 1) << said.err;
    EXPECT_EQ(said.out, "");
  };
  for (const std::string kind : {"sqlite:", "log:", "dir:"}) {
    const std::string url = kind + (folder / kind.substr(0, kind.size() - 1)).string();
    fs::permissions(folder, fs::perms::none);
    expect_denied(url);
    fs::permissions(folder, fs::perms::owner_read | fs::perms::owner_exec);
    expect_denied(url);
    EXPECT_TRUE(fs::is_empty(folder));
    fs::permissions(folder, fs::perms::owner_all);
    ASSERT_EQ(stint({"acquire", "r", "--store", url}).exit_code, 0);
    fs::permissions(folder, fs::perms::none);
    expect_denied(url);
    fs::permissions(folder, fs::perms::owner_all);
    for (const auto& file : fs::directory_iterator(folder)) {
      if (file.is_regular_file()) fs::permissions(file, fs::perms::owner_read);
    }
    if (kind == "sqlite:") expect_denied(url);
    fs::remove_all(folder);
    fs::create_directory(folder);
  }
}

TEST(RefusedFileSystem, IsNamed) {
  SKIP_WITHOUT_MOUNTS();
  const Stint stint;
  const std::string path = mount_point(stint);
  const Mount disk({.type = "ramfs", .target = path});
  ASSERT_TRUE(disk.ok());
  const Finished refused = stint({"acquire", "r"});
  EXPECT_EQ(refused.exit_code, 69);
  EXPECT_EQ(refused.out, "");
  EXPECT_NE(refused.err.find("cannot be kept on ramfs"), std::string::npos) << refused.err;
  EXPECT_FALSE(std::filesystem::exists(stint.database()));
}

// The program under strace, which does something to one of its system calls.
Command struck(const Stint& stint, const std::string& inject, std::vector<std::string> words) {
  Command command = stint.command(std::move(words));
  const std::vector<std::string> before = {
      "strace", "-f",   "-o", stint.dir().file("trace"), "-e", "trace=fdatasync,fsync,pwrite64",
      "-e",     inject, "--"};
  command.argv.insert(command.argv.begin(), before.begin(), before.end());
  return command;
}

void expect_named(const Stint& stint, pid_t stopped, std::vector<std::string> words) {
  words.insert(words.end(), {"--store", cat("sqlite:", stint.database(), "?timeout=1500ms")});
  const Finished done = stint(words);
  EXPECT_EQ(done.exit_code, 69) << done.err;
  EXPECT_LT(done.took, milliseconds(5000));
  EXPECT_NE(done.err.find(cat("process ", stopped)), std::string::npos) << done.err;
  EXPECT_NE(done.err.find("which is stopped"), std::string::npos) << done.err;
}

TEST(LockedByAStoppedProcess, TheMessageNamesIt) {
  SKIP_WITHOUT_STRACE();
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "kept", "--ttl", "1h"}).exit_code, 0);
  // Stopped in the middle of its commit, with the write lock.
  Child child(struck(stint, "inject=fdatasync:signal=STOP:when=1", {"acquire", "mine"}));
  pid_t stopped = 0;
  ASSERT_TRUE(wait_until([&] {
    return (stopped = stopped_by(stint.dir().file("trace"), child.pid())) != 0;
  })) << child.err();
  expect_named(stint, stopped, {"acquire", "r"});
  expect_named(stint, stopped, {"renew", "kept", "--token", "1"});
  EXPECT_TRUE(stint.held("kept")) << "readers do not wait";
  ::kill(stopped, SIGCONT);
  const auto exit = child.wait(milliseconds(10'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 0) << child.err();
  EXPECT_TRUE(stint.held("mine"));
  EXPECT_EQ(stint({"renew", "kept", "--token", "1"}).exit_code, 0);
  EXPECT_EQ(stint({"acquire", "r"}).out, "1\n");
}

// The first process to open the file makes the log's index: no busy handler is asked meanwhile.
TEST(LockedByAStoppedProcess, AlsoWhileItPutsTheLogInOrder) {
  SKIP_WITHOUT_STRACE();
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "kept", "--ttl", "1h"}).exit_code, 0);
  Child child(struck(stint, "inject=pwrite64:signal=STOP:when=1", {"acquire", "mine"}));
  pid_t stopped = 0;
  ASSERT_TRUE(wait_until([&] {
    return (stopped = stopped_by(stint.dir().file("trace"), child.pid())) != 0;
  })) << child.err();
  expect_named(stint, stopped, {"acquire", "r"});
  ::kill(stopped, SIGCONT);
  const auto exit = child.wait(milliseconds(10'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 0) << child.err();
  EXPECT_TRUE(stint.held("kept"));
}

// Of two first users one makes the log in the very moment in which the other misses it.
TEST(FirstUse, ALogThatAnotherMakesMeanwhileIsNotOpenedForReadingOnly) {
  SKIP_WITHOUT_STRACE();
  const Stint stint;
  const std::string log = stint.database() + "-wal";
  Command late = stint.command({"acquire", "late", "--ttl", "1h"});
  const std::vector<std::string> before = {"strace", "-f",
                                           "-o",     stint.dir().file("trace"),
                                           "-P",     log,
                                           "-e",     "trace=openat",
                                           "-e",     "inject=openat:delay_exit=1500000:when=1",
                                           "--"};
  late.argv.insert(late.argv.begin(), before.begin(), before.end());
  Child child(late);
  // It has missed the log and is held up; nobody else would make it now.
  ASSERT_TRUE(wait_until([&] {
    return read_text(stint.dir().file("trace")).find("ENOENT") != std::string::npos;
  })) << child.err();
  EXPECT_FALSE(std::filesystem::exists(log));
  EXPECT_EQ(stint({"acquire", "first", "--ttl", "1h"}).exit_code, 0);
  const auto exit = child.wait(milliseconds(20'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 0) << child.err();
  EXPECT_TRUE(stint.held("late") && stint.held("first"));
}

// The same with the anchor: one misses it, and then it is there.
TEST(FirstUse, AnAnchorThatAnotherMakesMeanwhileIsNotAFault) {
  SKIP_WITHOUT_STRACE();
  const Stint stint;
  // One of its two names is the store's generation. The other hangs on where the store is: it is
  // the same for the second store at this place.
  ASSERT_EQ(stint({"acquire", "r"}).exit_code, 0);
  std::string anchor;
  for (const auto& one :
       std::filesystem::directory_iterator(stint.dir().file("state/stint/anchors"))) {
    const bool by_place =
        read_text(one.path().string()).find(one.path().filename().string()) == std::string::npos;
    if (by_place) anchor = one.path().string();
  }
  ASSERT_NE(anchor, "");
  std::filesystem::remove_all(stint.dir().file("state"));
  Command late = stint.command({"acquire", "late", "--ttl", "1h"});
  const std::string trace = stint.dir().file("trace");
  const std::vector<std::string> before = {
      "strace", "-f", "-o",           trace, "-P",
      anchor,   "-e", "trace=openat", "-e",  "inject=openat:delay_exit=1500000:when=1",
      "--"};
  late.argv.insert(late.argv.begin(), before.begin(), before.end());
  Child child(late);
  ASSERT_TRUE(wait_until([&] { return read_text(trace).find("ENOENT") != std::string::npos; }))
      << child.err();
  EXPECT_EQ(stint({"acquire", "first", "--ttl", "1h"}).exit_code, 0);
  EXPECT_TRUE(std::filesystem::exists(anchor)) << "too late to show anything";
  const auto exit = child.wait(milliseconds(20'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 0) << child.err();
  EXPECT_TRUE(stint.held("late") && stint.held("first"));
}

// ---- Syncs that go on failing

// EVIDENCE-OF: G11
TEST(EverySyncFails, AGrantIsUnknownNotRefusedAndNotAcknowledged) {
  SKIP_WITHOUT_STRACE();
  for (const char* error : {"EIO", "ENOSPC"}) {
    const Stint stint;
    ASSERT_EQ(stint({"run", "r", "--", "true"}).exit_code, 0);
    const std::string inject = cat("inject=fdatasync,fsync:error=", error, ":when=1+");
    const Finished got = run(struck(stint, inject, {"acquire", "r", "--ttl", "1h"}));
    EXPECT_EQ(got.exit_code, 14) << got.err;
    EXPECT_EQ(got.out, "");
    const std::uint64_t stands = parse_digits(stint.lease("r", "token")).value_or(0);
    EXPECT_LE(stands, 2U);
    EXPECT_EQ(stint({"revoke", "r", "--token", cat(stands), "--why", "test"}).exit_code, 0);
    EXPECT_GT(token_of(stint({"acquire", "r"})), stands);
  }
}

TEST(EverySyncFails, NoWorkIsStarted) {
  SKIP_WITHOUT_STRACE();
  const Stint stint;
  ASSERT_EQ(stint({"run", "r", "--", "true"}).exit_code, 0);
  const std::string ran = stint.dir().file("ran");
  const Finished run_it = run(
      struck(stint, "inject=fdatasync,fsync:error=EIO:when=1+", {"run", "r", "--", "touch", ran}));
  EXPECT_TRUE(run_it.exit_code == 14 || run_it.exit_code == 69) << run_it.err;
  EXPECT_FALSE(std::filesystem::exists(ran));
}

// ---- Damaged, deleted

void expect_damaged(const Stint& stint, std::string_view words) {
  for (const char* verb : {"acquire", "show"}) {
    const Finished done = stint({verb, "r"});
    EXPECT_EQ(done.exit_code, 69) << verb << done.err;
    EXPECT_EQ(done.out, "");
    EXPECT_NE(done.err.find(words), std::string::npos) << done.err;
  }
}

// Used a few times; everything is in the file, the log is empty.
void use_and_settle(const Stint& stint) {
  for (int i = 0; i < 3; ++i) ASSERT_EQ(stint({"run", "r", "--", "true"}).exit_code, 0);
  const Finished settled =
      run({.argv = {"sqlite3", stint.database(), "PRAGMA wal_checkpoint(TRUNCATE)"}});
  ASSERT_EQ(settled.exit_code, 0) << settled.err;
}

TEST(DamagedStore, GarbageIsRefusedAndLeftAsItIs) {
  const Stint stint;
  use_and_settle(stint);
  const std::string garbage(20'000, 'x');
  write_text(stint.database(), garbage);
  expect_damaged(stint, "damaged");
  EXPECT_EQ(read_text(stint.database()), garbage);
}

TEST(DamagedStore, CutShortOrEmptiedIsRefused) {
  const Stint stint;
  use_and_settle(stint);
  std::filesystem::resize_file(stint.database(), 5000);
  expect_damaged(stint, "damaged");
  std::filesystem::resize_file(stint.database(), 0);
  expect_damaged(stint, "");
}

TEST(DamagedStore, PagesOfNoiseAreRefused) {
  const Stint stint;
  use_and_settle(stint);
  std::fstream file(stint.database(), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(4096);
  file << std::string(3 * 4096, '\x5a');
  file.close();
  expect_damaged(stint, "damaged");
}

// EVIDENCE-OF: G1 G12
TEST(DamagedStore, ALogThatLostItsEndIsNoticed) {
  const Stint stint;
  use_and_settle(stint);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(stint({"run", "r", "--", "true"}).exit_code, 0);
  const std::string log = stint.database() + "-wal";
  std::filesystem::resize_file(log, std::filesystem::file_size(log) / 3);
  std::filesystem::remove(stint.database() + "-shm");
  expect_damaged(stint, "went back in time");
  ASSERT_EQ(stint({"doctor", "--accept-restored", "--why", "the log was cut"}).exit_code, 0);
  // As far as the log goes it may be held by one that ended long ago.
  const std::string stands = stint.lease("r", "token");
  EXPECT_EQ(stint({"revoke", "r", "--token", stands, "--why", "test"}).exit_code, 0);
  EXPECT_GT(token_of(stint({"acquire", "r"})), 6U);
}

// EVIDENCE-OF: G1 G7 G12
TEST(DeletedUnderARunningHolder, TheWorkIsStoppedAndTheTokensDoNotStartOver) {
  const Stint stint;
  ASSERT_EQ(stint({"run", "r", "--", "true"}).exit_code, 0);
  const std::string pid_file = stint.dir().file("pid");
  Child holder(stint.command({"run", "r", "--ttl", "2s", "--", "sh", "-c",
                              cat("echo $$ >", pid_file, "; exec sleep 60")}));
  ASSERT_TRUE(wait_until([&] { return parse_digits(trim(read_text(pid_file))).has_value(); }));
  const auto work = static_cast<pid_t>(*parse_digits(trim(read_text(pid_file))));
  for (const char* suffix : {"", "-wal", "-shm"}) {
    std::filesystem::remove(stint.database() + suffix);
  }
  const Finished anew = stint({"acquire", "r"});
  EXPECT_EQ(anew.exit_code, 69) << anew.err;
  const auto exit = holder.wait(milliseconds(10'000));
  ASSERT_TRUE(exit);
  EXPECT_EQ(exit->code, 75) << holder.err();
  EXPECT_FALSE(alive(work));
  EXPECT_EQ(stint({"acquire", "r"}).exit_code, 69);
  ASSERT_EQ(stint({"doctor", "--accept-restored", "--why", "it was deleted"}).exit_code, 0);
  EXPECT_GT(token_of(stint({"acquire", "r"})), 2U);
}

}  // namespace
}  // namespace stint::test
