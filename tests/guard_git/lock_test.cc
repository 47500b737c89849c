// The locks of git processes that were killed in a repository with our hooks: cleared by the next
// push where it is sure whose they are, and left alone where it is not (ADR 0022).
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "guard/git_hook.h"
#include "tests/guard_git/lock_world.h"
#include "tests/support/slice.h"

namespace stint::test {
namespace {

namespace fs = std::filesystem;

class GitLocks : public LockWorld {
 protected:
  void SetUp() override {
    const auto done =
        guard::install_hook({.repository = world.repository(), .branches = {}, .fence = {}});
    ASSERT_TRUE(done) << done.error().message;
    a = world.clone("a");
    b = world.clone("b");
    grant = world.take("a");
    ASSERT_EQ(world.push(a, grant).exit_code, 0);
  }
  std::vector<std::string> locks() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::recursive_directory_iterator(world.repository())) {
      if (entry.path().extension() == ".lock") out.push_back(entry.path());
    }
    return out;
  }
  void before_hook(const std::string& script) const {
    world.server_hook("reference-transaction.before-stint", script);
  }
  // A push that waits in the server with everything locked and recorded.
  std::unique_ptr<Child> held_push(const Barrier& barrier) {
    before_hook(cat("[ \"$1\" = prepared ] || exit 0\n", barrier.script()));
    world.commit(a, "held");
    barrier.arm();
    auto child = std::make_unique<Child>(world.push_command(a, grant));
    EXPECT_TRUE(wait_until([&] { return barrier.arrived(); }, Millis(30'000))) << child->err();
    return child;
  }
  // Kills the git process of the only record, and lets its hook end.
  void kill_held(const Barrier& barrier) {
    const auto all = records();
    ASSERT_EQ(all.size(), 1U);
    ASSERT_GT(process_of(all.front()), 1);
    ASSERT_EQ(::kill(process_of(all.front()), SIGKILL), 0);
    barrier.let_go();
  }

  std::string a;
  std::string b;
  Grant grant;
};

// A git server that dies while everything is locked: the next holder seals and writes at once.
// EVIDENCE-OF: G5
TEST_F(GitLocks, OfAKilledServerAreClearedByTheNextHoldersSeal) {
  const Barrier barrier(world.dir().file("barrier"));
  const auto held = held_push(barrier);
  EXPECT_EQ(locks().size(), 3U) << "branch, fence and HEAD";
  const Grant next = world.take("b");
  kill_held(barrier);
  const auto sealed = world.seal(next);
  ASSERT_TRUE(sealed) << sealed.error().message;
  EXPECT_TRUE(locks().empty());
  EXPECT_TRUE(records().empty());
  // The one that was in it is told the truth, and does not come later.
  ASSERT_TRUE(held->wait(Millis(60'000)));
  EXPECT_NE(world.main(), world.head(a));
  world.git(b, {"fetch", "-q"});
  world.git(b, {"reset", "-q", "--hard", "origin/main"});
  const std::string mine = world.commit(b, "next");
  const Finished pushed = world.push(b, next);
  EXPECT_EQ(pushed.exit_code, 0) << pushed.err;
  EXPECT_EQ(world.main(), mine);
}

// EVIDENCE-OF: G5
TEST_F(GitLocks, OfAServerThatIsOnlyStoppedAreLeftAlone) {
  const Barrier barrier(world.dir().file("barrier"));
  const auto held = held_push(barrier);
  const auto all = records();
  ASSERT_EQ(all.size(), 1U);
  ASSERT_EQ(::kill(process_of(all.front()), SIGSTOP), 0);
  barrier.let_go();
  const auto before = locks();
  ASSERT_EQ(before.size(), 3U);
  const Finished other = world.push(b, grant, {"origin", "main:side"});
  EXPECT_EQ(other.exit_code, 69) << other.err;
  EXPECT_NE(other.err.find("which is alive"), std::string::npos) << other.err;
  EXPECT_EQ(locks(), before);
  EXPECT_EQ(records(), all);
  ASSERT_EQ(::kill(process_of(all.front()), SIGCONT), 0);
  const auto end = held->wait(Millis(60'000));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->code, 0) << held->err();
  EXPECT_EQ(world.main(), world.head(a));
  EXPECT_TRUE(records().empty());
}

// Git commands on the server itself are recorded by the same hook, and are not pushed aside.
TEST_F(GitLocks, OfALocalUpdateAreLeftAloneWhileItLives) {
  const Barrier barrier(world.dir().file("barrier"));
  before_hook(cat("[ \"$1\" = prepared ] || exit 0\n", barrier.script()));
  barrier.arm();
  Child local(
      {.argv = {"git", "--git-dir", world.repository(), "update-ref", "refs/tags/t", world.main()},
       .env = {{"GIT_CONFIG_GLOBAL", world.dir().file("gitconfig")}},
       .cwd = "/"});
  ASSERT_TRUE(wait_until([&] { return barrier.arrived(); }, Millis(30'000))) << local.err();
  const Finished other = world.git(b, {"push", "origin", "HEAD:refs/tags/t"});
  EXPECT_NE(other.exit_code, 0);
  EXPECT_NE(other.err.find("which is alive"), std::string::npos) << other.err;
  kill_held(barrier);
  ASSERT_TRUE(local.wait(Millis(30'000)));
  EXPECT_TRUE(fs::exists(file("refs/tags/t.lock")));
  const Finished then = world.git(b, {"push", "origin", "HEAD:refs/tags/t"});
  EXPECT_EQ(then.exit_code, 0) << then.err;
}

// A gc that was killed left packed-refs locked: from then on nobody's locks were recorded.
// EVIDENCE-OF: G5
TEST_F(GitLocks, AreRecordedAlsoWhilePackedRefsIsLocked) {
  write_text(file("packed-refs.lock"), "");
  const Barrier barrier(world.dir().file("barrier"));
  const auto held = held_push(barrier);
  EXPECT_EQ(locks().size(), 4U) << "branch, fence, HEAD and packed-refs";
  const Grant next = world.take("b");
  ASSERT_NO_FATAL_FAILURE(kill_held(barrier));
  const auto sealed = world.seal(next);
  ASSERT_TRUE(sealed) << sealed.error().message;
  EXPECT_EQ(locks(), std::vector{file("packed-refs.lock")});
  ASSERT_TRUE(held->wait(Millis(60'000)));
}

// A dead git was told as alive while its hook lived, and who clears up as a git.
TEST_F(GitLocks, AreToldByWhoIsAliveAndWhoIsDead) {
  const std::string dead = "4194303.1";
  const std::string alive = cat(::getpid(), ".", start_of(::getpid()));
  const auto told = [&](const std::string& name) {
    const std::string record = file(cat("stint/locks/", here(), ".", name));
    fs::create_directories(record);
    fs::create_directories(file("refs/tags"));
    write_text(file("refs/tags/t.lock"), "");
    fs::create_hard_link(file("refs/tags/t.lock"), cat(record, "/1"));
    write_text(cat(record, "/names"), "1 refs/tags/t.lock\n");
    write_text(cat(record, "/hook"), cat(::getpid(), " ", start_of(::getpid()), "\n"));
    const Finished pushed = world.git(b, {"push", "origin", "HEAD:refs/tags/t"});
    EXPECT_NE(pushed.exit_code, 0);
    fs::remove_all(file("stint/locks"));
    fs::remove(file("refs/tags/t.lock"));
    return pushed.err;
  };
  const std::string me = cat("process ", ::getpid());
  EXPECT_NE(told(dead).find(cat("made by the git process 4194303, which is dead; it is cleared "
                                "away once its hook, the ",
                                me)),
            std::string::npos);
  EXPECT_NE(told(cat(dead, ".by.", here(), ".", alive)).find(cat("cleared away by the ", me)),
            std::string::npos);
  EXPECT_NE(told(alive).find(cat("held by the git ", me, ", which is alive")), std::string::npos);
}

// Where it cannot be read whether the word is given (ADR 0026), it counts as given.
TEST_F(GitLocks, ThatWereLinkedLateStayWhereTheWordCannotBeRead) {
  const std::string record = file(cat("stint/locks/", here(), ".4194303.1"));
  const auto pushed = [&](const char* word) {
    world.server_config("stint.onlygit", word);
    fs::create_directories(record);
    fs::create_directories(file("refs/tags"));
    fs::remove(file("refs/tags/t"));
    write_text(file("refs/tags/t.lock"), "");
    fs::create_hard_link(file("refs/tags/t.lock"), cat(record, "/1"));
    write_text(cat(record, "/late"), "1 refs/tags/t.lock\n");
    write_text(cat(record, "/whole"), "");
    const bool done = world.git(b, {"push", "origin", "HEAD:refs/tags/t"}).exit_code == 0;
    fs::remove_all(file("stint/locks"));
    fs::remove(file("refs/tags/t.lock"));
    return done;
  };
  EXPECT_TRUE(pushed("false"));
  EXPECT_FALSE(pushed("perhaps"));
}

// Nobody knows whose this one is: it stays, and who pushes is told so.
TEST_F(GitLocks, ThatNobodyRecordedStayAndAreTold) {
  write_text(file("refs/heads/main.lock"), "");
  world.commit(a, "more");
  const Finished pushed = world.push(a, grant);
  EXPECT_EQ(pushed.exit_code, 69) << pushed.err;
  EXPECT_NE(pushed.err.find("refs/heads/main.lock stands since 20"), std::string::npos);
  EXPECT_NE(pushed.err.find("it is not known whose it is"), std::string::npos) << pushed.err;
  EXPECT_TRUE(fs::exists(file("refs/heads/main.lock")));
}

// Between the comparison and the removal another may come: only one ever removes, and a new lock of
// the same name is never what it removes.
// EVIDENCE-OF: G5
TEST_F(GitLocks, AreClearedByOneAtATime) {
  const Barrier barrier(world.dir().file("barrier"));
  const Barrier removing(world.dir().file("removing"));
  // Whoever removes a lock is held up just before.
  const std::string tools = world.dir().file("tools");
  fs::create_directories(tools);
  write_text(cat(tools, "/rm"), cat("#!/bin/sh\ncase \"$*\" in *.lock*)\n(", removing.script(),
                                    ")\n;; esac\nexec /bin/rm \"$@\"\n"));
  ASSERT_EQ(::chmod(cat(tools, "/rm").c_str(), 0755), 0);
  const std::string path = cat(tools, ":", std::getenv("PATH"));
  const Command push = world.git_command(b, {"push", "origin", "HEAD:refs/tags/t"});
  for (const bool killed : {true, false}) {
    before_hook(cat("[ \"$1\" = prepared ] || exit 0\n", barrier.script()));
    barrier.arm();
    Child held(push);
    ASSERT_TRUE(wait_until([&] { return barrier.arrived(); }, Millis(30'000))) << held.err();
    kill_held(barrier);
    ASSERT_TRUE(held.wait(Millis(30'000)));
    ASSERT_EQ(locks().size(), 1U);
    removing.arm();
    Command with_tools = push;
    with_tools.env.emplace_back("PATH", path);
    Child slow(with_tools);
    ASSERT_TRUE(wait_until([&] { return removing.arrived(); }, Millis(30'000))) << slow.err();
    const auto claimed = records();
    ASSERT_EQ(claimed.size(), 1U);
    EXPECT_NE(claimed.front().find(".by."), std::string::npos);
    const Finished other = run(push);
    EXPECT_NE(other.exit_code, 0) << "while another is about to remove it nobody may";
    EXPECT_EQ(locks().size(), 1U);
    EXPECT_EQ(records(), claimed);
    if (killed) {
      ASSERT_EQ(::kill(process_of(claimed.front()), SIGKILL), 0);
    }
    removing.let_go();
    const auto end = slow.wait(Millis(60'000));
    ASSERT_TRUE(end);
    // Killed: the same push takes it over once more.
    EXPECT_EQ(end->code, 0) << slow.err();
    EXPECT_TRUE(locks().empty());
    EXPECT_TRUE(records().empty());
    fs::remove(file("refs/tags/t"));
  }
}

struct Line {
  const char* what;
  std::string record;  // its name
  bool cleared;
  bool whole = true;
  std::string hook = {};
  const char* list = "names";
};

// Every way in which a record can name its process.
// EVIDENCE-OF: G5
TEST_F(GitLocks, AreClearedOnlyWhereTheirProcessIsSureToBeDead) {
  const std::string start = start_of(::getpid());
  const std::string boot = LockWorld::boot();
  const std::string here = LockWorld::here();
  const std::string alive = cat(::getpid(), ".", start);
  const std::string dead = cat("4194303.", start);  // pid_max is at most 4194304
  ASSERT_NE(::kill(4194303, 0), 0);
  const std::string other_boot =
      cat("00000000-0000-4000-8000-000000000000.", space("pid"), ".", space("time"));
  // tests/guard_git runs on a local file system; a container's boot id proves nothing.
  const bool first = space("pid") == "4026531836";
  const Line lines[] = {
      {"gone", cat(here, ".", dead), true},
      {"alive", cat(here, ".", alive), false},
      {"its number is another's now", cat(here, ".", ::getpid(), ".1"), true},
      {"of another pid namespace", cat(boot, ".1.", space("time"), ".", dead), false},
      {"of another time namespace", cat(boot, ".", space("pid"), ".1.", dead), false},
      {"of another boot", cat(other_boot, ".", alive), first},
      {"of another boot, where it is mounted over the network",
       cat("00000000-0000-4000-8000-000000000000~.", space("pid"), ".", space("time"), ".", dead),
       false},
      {"cleared by one of such a boot",
       cat(here, ".", dead, ".by.00000000-0000-4000-8000-000000000000~.", space("pid"), ".",
           space("time"), ".", dead),
       false},
      {"of another boot, in a container", cat("0000.7.", space("time"), ".", dead), false},
      {"no name of ours", "garbage", false},
      {"no number", cat(here, ".x.1"), false},
      {"cleared by one alive", cat(here, ".", dead, ".by.", here, ".", alive), false},
      {"cleared by one that died", cat(here, ".", dead, ".by.", here, ".", dead), true},
      {"half written, by one alive", cat(here, ".", dead), false, false,
       cat(::getpid(), " ", start)},
      {"half written, by one that died", cat(here, ".", dead), true, false, cat("4194303 ", start)},
      {"half written", cat(here, ".", dead), true, false},
      {"linked when it was dead already", cat(here, ".", dead), true, true, {}, "late"},
  };
  for (const Line& line : lines) {
    SCOPED_TRACE(line.what);
    const std::string record = file(cat("stint/locks/", line.record));
    const std::string lock = file("refs/tags/t.lock");
    fs::create_directories(record);
    fs::create_directories(file("refs/tags"));
    write_text(lock, "");
    fs::create_hard_link(lock, cat(record, "/1"));
    write_text(cat(record, "/", line.list), "1 refs/tags/t.lock\n");
    if (line.whole) write_text(cat(record, "/whole"), "");
    if (!line.hook.empty()) write_text(cat(record, "/hook"), line.hook + "\n");
    const Finished pushed = world.git(b, {"push", "origin", "HEAD:refs/tags/t"});
    EXPECT_EQ(pushed.exit_code == 0, line.cleared) << pushed.err;
    EXPECT_EQ(fs::exists(lock), !line.cleared);
    EXPECT_EQ(fs::exists(record), !line.cleared);
    fs::remove_all(file("stint/locks"));
    fs::remove(lock);
    fs::remove(file("refs/tags/t"));
  }
}

// What is on a disk here may be mounted over the network there: another boot that sees it so is
// another machine, and may be alive. So who records says what it sees.
// EVIDENCE-OF: G5
TEST_F(GitLocks, AreRecordedWithWhatTheirMachineSeesOfTheFileSystem) {
  const std::string seen = world.dir().file("seen");
  before_hook(cat("ls ", world.repository(), "/stint/locks >>", seen, "\nexit 0\n"));
  const auto recorded = [&](std::vector<std::string> words, const std::string& tag) {
    Command push = world.git_command(b, {"push", "origin", cat("HEAD:refs/tags/", tag)});
    push.argv.insert(push.argv.begin(), words.begin(), words.end());
    const Finished done = run(push, Millis(60'000));
    EXPECT_EQ(done.exit_code, 0) << done.err;
    const std::string text = fs::exists(seen) ? read_text(seen) : "";
    fs::remove(seen);
    return text;
  };
  EXPECT_TRUE(recorded({}, "here").starts_with(cat(here(), ".")));
  // Any file system that is not known to be one machine's alone.
  for (const char* name : {"up", "work"}) fs::create_directories(world.dir().file(name));
  const std::vector<std::string> over = {
      "unshare",
      "-m",
      "sh",
      "-c",
      cat("mount -t overlay over -o lowerdir=", world.repository(),
          ",upperdir=", world.dir().file("up"), ",workdir=", world.dir().file("work"), " ",
          world.repository(), " && exec \"$@\""),
      "sh"};
  std::vector<std::string> probe = over;
  probe.emplace_back("true");
  if (run({.argv = probe, .cwd = "/"}).exit_code != 0)
    GTEST_SKIP() << "nothing can be mounted here";
  EXPECT_TRUE(recorded(over, "there").starts_with(cat(boot(), "~.")));
}

// The administrator removed the lock, and somebody made a new one of the same name.
TEST_F(GitLocks, OfTheSameNameAndAnotherFileStay) {
  const Barrier barrier(world.dir().file("barrier"));
  const auto held = held_push(barrier);
  for (const std::string& lock : locks()) {
    fs::remove(lock);
    write_text(lock, "");
  }
  kill_held(barrier);
  held->wait(Millis(60'000));
  const Finished other = world.push(b, grant, {"origin", "main:side"});
  EXPECT_EQ(other.exit_code, 69) << other.err;
  EXPECT_EQ(locks().size(), 3U);
}

// Only what is sure to be the git's own is recorded as its own.
TEST_F(GitLocks, OfOthersAreNotRecorded) {
  const std::string seen = world.dir().file("seen");
  before_hook(
      cat("cat ", world.repository(), "/stint/locks/*/names >>", seen, " 2>/dev/null\nexit 0\n"));
  const auto take_seen = [&] {
    const std::string text = fs::exists(seen) ? read_text(seen) : "";
    fs::remove(seen);
    return text;
  };
  const auto server = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"--git-dir", world.repository()});
    return world.git(a, std::move(words));
  };
  world.commit(a, "one");
  ASSERT_EQ(world.push(a, grant).exit_code, 0);
  EXPECT_NE(take_seen().find("refs/heads/main.lock"), std::string::npos) << "the probe works";

  // Who packs refs names them all, and has locked none of them.
  write_text(file("refs/heads/main.lock"), cat(world.main(), "\n"));
  server({"pack-refs", "--all", "--no-prune"});
  EXPECT_EQ(take_seen(), "");
  fs::remove(file("refs/heads/main.lock"));

  // A lock that does not say what this git writes.
  const Finished hand =
      world.git(a, {"-c",
                    cat("alias.h=!printf '%s\\n' \"", std::string(40, '0'), " ", world.main(),
                        " refs/tags/t\" | ", file("hooks/reference-transaction"), " prepared"),
                    "h"});
  EXPECT_EQ(take_seen(), "") << hand.err;

  // A script between git and the hook: its end is not git's end.
  fs::rename(file("hooks/reference-transaction"), file("hooks/ours"));
  world.server_hook("reference-transaction", "\"${0%/*}/ours\" \"$@\"\nexit $?");
  world.commit(a, "two");
  ASSERT_EQ(world.push(a, grant).exit_code, 0);
  EXPECT_EQ(take_seen(), "");
  EXPECT_TRUE(records().empty());
}

TEST_F(GitLocks, AHookThatWasThereGoesOn) {
  ASSERT_TRUE(guard::uninstall_hook(world.repository()));
  world.server_hook("pre-receive", cat("cat >>", world.dir().file("seen"), "\n[ ! -e ",
                                       world.dir().file("no"), " ]"));
  ASSERT_TRUE(guard::install_hook({.repository = world.repository(), .branches = {}, .fence = {}}));
  const std::string pushed = world.commit(a, "more");
  const Finished done = world.push(a, grant);
  ASSERT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(read_text(world.dir().file("seen")).find(cat(pushed, " refs/heads/main\n")),
            std::string::npos);
  write_text(world.dir().file("no"), "");
  world.commit(a, "refused");
  EXPECT_EQ(world.push(a, grant).exit_code, 1);
  EXPECT_EQ(world.main(), pushed);
  const auto gone = guard::uninstall_hook(world.repository());
  ASSERT_TRUE(gone);
  EXPECT_TRUE(gone->restored);
  EXPECT_NE(read_text(file("hooks/pre-receive")).find("seen"), std::string::npos);
  EXPECT_FALSE(fs::exists(file("hooks/reference-transaction")));
}

}  // namespace
}  // namespace stint::test
