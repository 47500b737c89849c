// Locks that nobody recorded, in a repository where by the operator's word nothing but git writes
// refs: cleared once no git process is left that can have made them (ADR 0026).
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "guard/git_hook.h"
#include "guard/git_probe.h"
#include "tests/guard_git/orphan_world.h"

namespace stint::test {
namespace {

namespace fs = std::filesystem;

// EVIDENCE-OF: G5
TEST_F(GitOrphans, OfNobodyAreClearedByTheNextPush) {
  leave_lock();
  EXPECT_TRUE(gets_in());
  EXPECT_FALSE(fs::exists(lock()));
  EXPECT_EQ(world.at("refs/tags/t"), world.head(a));
  world.commit(a, "more");
  EXPECT_EQ(world.git(a, {"push", "origin", "HEAD:refs/tags/u"}).exit_code, 0);
  EXPECT_TRUE(looks().empty()) << "what was looked at is swept away";
}

// A real one, which holds the lock and whose hooks do not run.
// EVIDENCE-OF: G5
TEST_F(GitOrphans, OfAGitThatIsOnlyStoppedStayUntilItIsDead) {
  const std::string number = world.dir().file("pid");
  Child local(
      {.argv = {"sh", "-c",
                cat("mkfifo in && { git -c core.hooksPath=/dev/null --git-dir ", world.repository(),
                    " update-ref --stdin <in & } && exec 3>in && "
                    "printf 'start\\nupdate refs/tags/t ",
                    world.main(),
                    "\\nprepare\\n' >&3 && echo $! >pid.new && mv pid.new pid && wait")},
       .env = {{"GIT_CONFIG_GLOBAL", world.dir().file("gitconfig")}},
       .cwd = world.dir().path()});
  ASSERT_TRUE(wait_until([&] { return fs::exists(number) && fs::exists(lock()); })) << local.err();
  const auto pid = static_cast<pid_t>(parse_digits(trim(read_text(number))).value_or(0));
  ASSERT_GT(pid, 1);
  ASSERT_EQ(::kill(pid, SIGSTOP), 0);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(stays_because_of(pid));
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  EXPECT_TRUE(gets_in());
  EXPECT_EQ(world.at("refs/tags/t"), world.head(a));
}

// EVIDENCE-OF: G5
TEST_F(GitOrphans, StayWhileAGitLivesThatMayHaveMadeThem) {
  for (const char* word : {"gc", "pack-refs", "update-ref", "fetch", "receive-pack"}) {
    SCOPED_TRACE(word);
    leave_lock();
    // A receive-pack goes to its repository before it locks anything.
    const auto child = std::string_view(word) == "receive-pack"
                           ? git_called(word, world.repository())
                           : git_called(word);
    EXPECT_TRUE(stays_because_of(child->pid()));
    child->signal(SIGKILL);
    EXPECT_TRUE(gets_in());
    fs::remove(file("refs/tags/t"));
  }
}

TEST_F(GitOrphans, DoNotWaitForAGitThatNeverLocks) {
  std::vector<std::unique_ptr<Child>> all;
  for (const char* word : {"daemon", "upload-pack", "http-backend", "cat-file", "receive-pack"})
    all.push_back(git_called(word));
  leave_lock();
  EXPECT_TRUE(gets_in());
  for (const auto& child : all) EXPECT_TRUE(child->running());
}

// Who comes after the first look did not make what stood there then.
TEST_F(GitOrphans, DoNotWaitForNewcomers) {
  const ino_t before = leave_lock();
  const auto first = git_called("gc");
  EXPECT_NE(push().exit_code, 0);
  ASSERT_EQ(looks().size(), 1U);
  const auto second = git_called("gc");
  EXPECT_NE(push().exit_code, 0);
  EXPECT_EQ(inode(lock()), before);
  first->signal(SIGKILL);
  EXPECT_TRUE(gets_in());
  EXPECT_TRUE(second->running());
  // Of the next lock it may be the maker.
  fs::remove(file("refs/tags/t"));
  leave_lock();
  EXPECT_NE(push().exit_code, 0);
  EXPECT_TRUE(fs::exists(lock()));
}

// One right for one file: whoever is about to remove it is never overtaken.
// EVIDENCE-OF: G5
TEST_F(GitOrphans, AreClearedByOneAtATime) {
  const Barrier removing(world.dir().file("removing"));
  const Command slowly = held_in("rm", "*.lock*", removing, push_command());
  for (const bool killed : {true, false}) {
    SCOPED_TRACE(killed);
    const ino_t before = leave_lock();
    const auto slow = held_at(removing, slowly);
    ASSERT_TRUE(removing.arrived());
    std::string right;
    for (const std::string& look : looks()) {
      for (const auto& entry : fs::directory_iterator(look)) {
        if (entry.path().filename().string().starts_with("right.") &&
            entry.path().filename().string().find(".by.") != std::string::npos)
          right = entry.path();
      }
    }
    ASSERT_NE(right, "");
    const Finished other = push();
    EXPECT_NE(other.exit_code, 0);
    EXPECT_NE(other.err.find("another push is about to clear it away"), std::string::npos)
        << other.err;
    EXPECT_EQ(inode(lock()), before);
    EXPECT_EQ(looks().size(), 1U);
    EXPECT_TRUE(fs::exists(right));
    if (killed) {
      const pid_t pid = process_of(right);
      ASSERT_GT(pid, 1);
      ASSERT_EQ(::kill(pid, SIGKILL), 0);
      removing.let_go();
      EXPECT_TRUE(slow->wait(Millis(60'000)));
      EXPECT_TRUE(gets_in()) << "the next one takes it over";
    } else {
      removing.let_go();
      const auto end = slow->wait(Millis(60'000));
      EXPECT_TRUE(end && end->code == 0) << slow->err();
    }
    EXPECT_FALSE(fs::exists(lock()));
    fs::remove(file("refs/tags/t"));
  }
}

// What is compared is compared by who has the right: not what stood there before.
// EVIDENCE-OF: G5
TEST_F(GitOrphans, OfTheSameNameAndAnotherFileStay) {
  const Barrier taking(world.dir().file("taking"));
  const Command slowly = held_in("mv", "*right.*by.*", taking, push_command());
  leave_lock();
  const auto slow = held_at(taking, slowly);
  ASSERT_TRUE(taking.arrived());
  fs::remove(lock());
  const ino_t another = leave_lock();
  taking.let_go();
  EXPECT_TRUE(slow->wait(Millis(60'000)));
  EXPECT_EQ(inode(lock()), another) << slow->err();
}

// A record may appear when the lock has been judged already: then it goes with the record.
// EVIDENCE-OF: G5
TEST_F(GitOrphans, ThatAreRecordedAreLeftToTheirRecord) {
  const Barrier taking(world.dir().file("taking"));
  const Command slowly = held_in("mv", "*right.*by.*", taking, push_command());
  const ino_t before = leave_lock();
  const auto slow = held_at(taking, slowly);
  ASSERT_TRUE(taking.arrived());
  fs::create_directories(file("stint/locks/x"));
  fs::create_hard_link(lock(), file("stint/locks/x/1"));
  taking.let_go();
  const auto end = slow->wait(Millis(60'000));
  EXPECT_TRUE(end && end->code != 0) << slow->err();
  EXPECT_EQ(inode(lock()), before);
  fs::remove_all(file("stint/locks/x"));
  EXPECT_TRUE(gets_in());
}

// The hook of a killed git is about to record its lock, which is cleared meanwhile; another, alive,
// has one of the same name and content when it does.
// EVIDENCE-OF: G5
TEST_F(GitOrphans, AHookThatOutlivesItsGitDoesNotRecordWhatIsAnothers) {
  const Barrier linking(world.dir().file("linking"));
  const Barrier inside(world.dir().file("inside"));
  world.server_hook("reference-transaction.before-stint",
                    cat("[ \"$1\" = prepared ] || exit 0\n", inside.script()));
  linking.arm();
  Child first(held_in("ln", "*refs/tags/t.lock*stint/locks*", linking, push_command()));
  ASSERT_TRUE(wait_until([&] { return linking.arrived(); })) << first.err();
  ASSERT_EQ(records().size(), 1U);
  const std::string record = records().front();
  const pid_t pid = process_of(record);
  ASSERT_GT(pid, 1);
  ASSERT_EQ(::kill(pid, SIGKILL), 0);
  const auto second = held_at(inside, push_command());
  ASSERT_TRUE(inside.arrived());
  const ino_t of_second = inode(lock());
  ASSERT_NE(of_second, 0U);
  linking.let_go();
  // The hook ends with its record, which has the other's lock in it.
  ASSERT_TRUE(wait_until([&] { return fs::exists(file(cat("stint/locks/", record, "/whole"))); }));
  EXPECT_EQ(inode(file(cat("stint/locks/", record, "/1"))), of_second) << "the play was not met";
  ASSERT_TRUE(first.wait(Millis(60'000)));
  EXPECT_NE(push().exit_code, 0);
  EXPECT_EQ(inode(lock()), of_second) << "it is held by a live one";
  inside.let_go();
  const auto end = second->wait(Millis(60'000));
  EXPECT_TRUE(end && end->code == 0) << second->err();
  EXPECT_EQ(world.at("refs/tags/t"), world.head(a));
}

struct Look {
  const char* what;
  std::string gits;
  std::string where;
  std::string right;
  bool cleared;
};

// Every way in which a look can be found.
// EVIDENCE-OF: G5
TEST_F(GitOrphans, AreClearedOnlyWhereTheLookSaysSo) {
  const std::string boot = LockWorld::boot();
  const std::string here = LockWorld::here();
  const std::string alive = cat(::getpid(), " ", start_of(::getpid()));
  std::string dotted = alive;
  std::ranges::replace(dotted, ' ', '.');
  const std::string dead = "4194303 1";  // pid_max is at most 4194304
  const bool first = space("pid") == "4026531836";
  const Look lines[] = {
      {"dead", cat(dead, "\nend\n"), here, "right.free", true},
      {"nobody", "end\n", here, "right.free", true},
      {"alive", cat(dead, "\n", alive, "\nend\n"), here, "right.free", false},
      {"its number is another's now", cat(::getpid(), " 1\nend\n"), here, "right.free", true},
      {"not whole", cat(dead, "\n"), here, "right.free", false},
      {"of another pid namespace", cat(dead, "\nend\n"), cat(boot, ".1.", space("time")),
       "right.free", false},
      {"of another boot", cat(alive, "\nend\n"),
       cat("00000000-0000-4000-8000-000000000000.", space("pid"), ".", space("time")), "right.free",
       first},
      {"the right is a live one's", cat(dead, "\nend\n"), here, cat("right.by.", here, ".", dotted),
       false},
      {"the right is a dead one's", cat(dead, "\nend\n"), here,
       cat("right.by.", here, ".4194303.1"), true},
      {"nobody has the right", cat(dead, "\nend\n"), here, "none", false},
  };
  for (const Look& line : lines) {
    SCOPED_TRACE(line.what);
    const ino_t before = leave_lock();
    const std::string look = file(cat("stint/orphans/", before));
    fs::create_directories(look);
    fs::create_hard_link(lock(), cat(look, "/lock"));
    write_text(cat(look, "/gits"), line.gits);
    write_text(cat(look, "/where"), cat(line.where, "\n"));
    write_text(cat(look, "/path"), cat(kLock, "\n"));
    write_text(cat(look, "/", line.right), "");
    const Finished pushed = push();
    EXPECT_EQ(pushed.exit_code == 0, line.cleared) << pushed.err;
    EXPECT_EQ(inode(lock()), line.cleared ? 0U : before);
    fs::remove_all(file("stint/orphans"));
    fs::remove(lock());
    fs::remove(file("refs/tags/t"));
  }
}

// Who cannot see every process clears nothing, and says why.
TEST_F(GitOrphans, StayWhereProcessesAreHidden) {
  const std::vector<std::string> hidden = {
      "unshare", "-m", "sh", "-c", "mount -t proc -o hidepid=2 proc /proc && exec \"$@\"", "sh"};
  Command there = push_command();
  std::vector<std::string> probe = hidden;
  probe.emplace_back("true");
  if (run({.argv = probe}).exit_code != 0) GTEST_SKIP() << "no /proc of its own can be mounted";
  there.argv.insert(there.argv.begin(), hidden.begin(), hidden.end());
  const ino_t before = leave_lock();
  const Finished pushed = run(there);
  EXPECT_NE(pushed.exit_code, 0);
  EXPECT_NE(pushed.err.find("not every process can be seen here"), std::string::npos) << pushed.err;
  EXPECT_EQ(inode(lock()), before);
  EXPECT_TRUE(looks().empty());
  EXPECT_TRUE(gets_in());
}

TEST_F(GitOrphans, TheWordIsToldAndGoesWithTheHooks) {
  const auto told = [&] {
    const auto lines = guard::probe_git(world.target());
    EXPECT_TRUE(lines) << lines.error().message;
    for (const guard::CheckLine& line : *lines) {
      if (line.text.starts_with("locks: ")) return line.text;
    }
    return std::string();
  };
  EXPECT_NE(told().find("nothing but git writes refs here"), std::string::npos);
  // A second installation does not take it back.
  const auto again =
      guard::install_hook({.repository = world.repository(), .branches = {}, .fence = {}});
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->already);
  EXPECT_TRUE(again->only_git);
  ASSERT_TRUE(guard::uninstall_hook(world.repository()));
  EXPECT_EQ(told(), "");
  ASSERT_TRUE(guard::install_hook({.repository = world.repository(), .branches = {}, .fence = {}}));
  EXPECT_NE(told().find("--only-git"), std::string::npos);
  leave_lock();
  const Finished pushed = push();
  EXPECT_NE(pushed.exit_code, 0);
  EXPECT_NE(pushed.err.find("it is not known whose it is"), std::string::npos) << pushed.err;
  EXPECT_TRUE(fs::exists(lock()));
}

}  // namespace
}  // namespace stint::test
