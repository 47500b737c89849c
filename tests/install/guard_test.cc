// stint::guard, through include/stint only, on a real sqlite: store.
#include "stint/guard.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "base/text.h"
#include "tests/support/process.h"

namespace stint::test {
namespace {

class GuardTest : public testing::Test {
 protected:
  GuardTest() {
    ::setenv("XDG_STATE_HOME", dir_.file("state").c_str(), 1);
    ::setenv("XDG_CONFIG_HOME", dir_.file("config").c_str(), 1);
  }
  Holder hold(const std::string& resource = "r") {
    auto holder = Holder::acquire(client_, {.resource = resource});
    if (!holder) ADD_FAILURE() << "not acquired";
    return std::move(*holder);
  }

  TempDir dir_;
  Client client_ = *Client::open({.store = cat("sqlite:", dir_.file("s.db"))});
};

// EVIDENCE-OF: G5
TEST_F(GuardTest, AfterANewHoldersSealTheOldOneIsRefused) {
  Holder first = hold();
  ASSERT_TRUE(guard::seal(first, "admit:site"));
  ASSERT_TRUE(client_.revoke({.resource = "r", .expected = first.token(), .why = "test"}));
  const auto refused = guard::seal(first, "admit:site");
  const auto* why = refused.get_if<guard::Refusal>();
  ASSERT_NE(why, nullptr);
  EXPECT_EQ(why->code, Code::Stale);
  EXPECT_EQ(why->offered, 1U);
  Holder second = hold();
  EXPECT_EQ(second.token(), 3U);
  const auto late =
      guard::admit(first, {.name = "site", .key = "k"}, [] { return ADD_FAILURE() << "ran", 0; });
  ASSERT_NE(late.get_if<guard::Refusal>(), nullptr);
  EXPECT_EQ(late.get_if<guard::Refusal>()->fence, 2U) << "sealed by the revoke";
  ASSERT_TRUE(guard::seal(second, "admit:site"));
}

TEST_F(GuardTest, AnActHasOneResultAndAnOvertakenOneDoesNotCount) {
  Holder first = hold();
  const auto done = guard::admit(first, {.name = "site", .key = "k"}, [] { return 7; });
  ASSERT_TRUE(done);
  EXPECT_EQ(done->result, 7);
  const auto again = guard::admit(first, {.name = "site", .key = "k"}, [] { return 8; });
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->already);
  EXPECT_EQ(again->result, 7);
  const auto overtaken = guard::admit(first, {.name = "site", .key = "k2"}, [&] {
    EXPECT_TRUE(client_.revoke({.resource = "r", .expected = first.token(), .why = "test"}));
    Holder next = hold();
    EXPECT_TRUE(guard::admit(next, {.name = "site", .key = "k2"}, [] { return 1; }));
    return 0;
  });
  const auto* late = overtaken.get_if<guard::Refusal>();
  ASSERT_NE(late, nullptr);
  EXPECT_TRUE(late->ran);
}

// EVIDENCE-OF: G5
TEST_F(GuardTest, AFileAndADirectoryAreReplacedUntilANewerHolderSeals) {
  const std::string page = dir_.file("page");
  const std::string site = dir_.file("site");
  const std::string staged = dir_.file("staged");
  std::filesystem::create_directory(staged);
  write_text(staged + "/a", "one");
  Holder first = hold();
  const auto written = guard::write(first, {.path = page, .body = "one"});
  ASSERT_TRUE(written) << written.error()->message;
  EXPECT_EQ(written->digest.size(), 64U);
  EXPECT_EQ(read_text(page), "one");
  const auto published = guard::publish(first, {.path = site, .staged = staged});
  ASSERT_TRUE(published) << published.error()->message;
  EXPECT_EQ(read_text(site + "/a"), "one");
  const auto unmet = guard::write(first, {.path = page, .body = "two", .if_match = "none"});
  EXPECT_NE(unmet.get_if<guard::Refusal>(), nullptr);
  // Both were remembered: the revoke seals them.
  ASSERT_TRUE(client_.revoke({.resource = "r", .expected = first.token(), .why = "test"}));
  write_text(staged + "/a", "late");
  const auto late = guard::write(first, {.path = page, .body = "late"});
  ASSERT_NE(late.get_if<guard::Refusal>(), nullptr);
  EXPECT_EQ(late.get_if<guard::Refusal>()->code, Code::Stale);
  EXPECT_EQ(late.get_if<guard::Refusal>()->fence, 2U);
  const auto late_tree = guard::publish(first, {.path = site, .staged = staged});
  ASSERT_NE(late_tree.get_if<guard::Refusal>(), nullptr);
  EXPECT_EQ(read_text(page), "one");
  EXPECT_EQ(read_text(site + "/a"), "one");
  Holder second = hold();
  const guard::WriteOptions once = {.path = page, .body = "two", .once = true, .key = "k"};
  ASSERT_TRUE(guard::write(second, once));
  const auto again = guard::write(second, once);
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->already);
  const auto other = guard::write(second, {.path = page, .body = "x", .once = true, .key = "y"});
  ASSERT_NE(other.get_if<guard::Refusal>(), nullptr);
  EXPECT_EQ(other.get_if<guard::Refusal>()->code, Code::Used);
  EXPECT_NE(guard::write(second, {.path = dir_.file("no/such"), .body = ""}).error(), nullptr);
}

TEST_F(GuardTest, WrongTargetsAreErrors) {
  Holder holder = hold();
  for (const char* bad : {"", "x", "proxy:", "file:../x", "postgres://u:pw@h/d#r"}) {
    const auto answer = guard::seal(holder, bad);
    ASSERT_NE(answer.error(), nullptr) << bad;
    EXPECT_EQ(answer.error()->code, Code::Invalid) << bad;
  }
  EXPECT_NE(guard::admit(holder, {.name = "", .key = "k"}, [] { return 0; }).error(), nullptr);
}

class PushTest : public GuardTest {
 protected:
  PushTest() {
    write_text(dir_.file("gitconfig"), "[user]\n\tname = t\n\temail = t@example.org\n");
    ::setenv("GIT_CONFIG_GLOBAL", dir_.file("gitconfig").c_str(), 1);
    ::setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
    git({"init", "-q", "--bare", "-b", "main", server()});
    git({"init", "-q", "-b", "main", clone()});
    git({"-C", clone(), "remote", "add", "origin", server()});
    commit("first");
    git({"-C", clone(), "push", "-q", "origin", "main"});
  }
  std::string server() const { return dir_.file("server.git"); }
  std::string clone() const { return dir_.file("clone"); }
  std::string git(std::vector<std::string> words) const {
    words.insert(words.begin(), "git");
    const Finished done = run({.argv = std::move(words), .cwd = "/"});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return std::string(trim(done.out));
  }
  std::string commit(const std::string& what) const {
    git({"-C", clone(), "commit", "-q", "--allow-empty", "-m", what});
    return git({"-C", clone(), "rev-parse", "HEAD"});
  }
  std::string main() const { return git({"--git-dir", server(), "rev-parse", "main"}); }
};

// EVIDENCE-OF: G5
TEST_F(PushTest, LandsForTheHolderAndIsRefusedForTheOneBefore) {
  Holder first = hold();
  const guard::PushOptions there = {.directory = clone(), .remote = "origin", .ref = "main"};
  const std::string one = commit("one");
  const auto pushed = guard::push(first, there);
  ASSERT_TRUE(pushed) << pushed.error()->message;
  EXPECT_EQ(pushed->oid, one);
  EXPECT_TRUE(pushed->sealed);
  EXPECT_EQ(pushed->target, cat("git:", server(), "#refs/heads/main"));
  EXPECT_EQ(main(), one);
  // Where git push would go.
  const std::string two = commit("two");
  git({"-C", clone(), "config", "branch.main.remote", "origin"});
  const auto by_default = guard::push(first, {.directory = clone()});
  ASSERT_TRUE(by_default) << by_default.error()->message;
  EXPECT_FALSE(by_default->sealed);
  EXPECT_EQ(main(), two);
  // It was remembered: the revoke seals it.
  ASSERT_TRUE(client_.revoke({.resource = "r", .expected = first.token(), .why = "test"}));
  commit("late");
  const auto late = guard::push(first, there);
  const auto* why = late.get_if<guard::Refusal>();
  ASSERT_NE(why, nullptr) << (late ? "landed" : late.error()->message);
  EXPECT_EQ(why->code, Code::Stale);
  EXPECT_EQ(why->fence, 2U);
  EXPECT_EQ(main(), two);
  Holder second = hold();
  ASSERT_TRUE(guard::push(second, there));
}

// What the host does with its children is its own affair.
class Host {
 public:
  explicit Host(bool reaps) : reaps_(reaps) {
    if (!reaps_) ::signal(SIGCHLD, SIG_IGN);
    if (!reaps_) return;
    thread_ = std::thread([this] {
      while (!over_) {
        if (::waitpid(-1, nullptr, WNOHANG) <= 0) std::this_thread::yield();
      }
    });
  }
  ~Host() {
    over_ = true;
    if (reaps_) thread_.join();
    ::signal(SIGCHLD, SIG_DFL);
  }

 private:
  const bool reaps_;
  std::atomic<bool> over_ = false;
  std::thread thread_;
};

// EVIDENCE-OF: G5
TEST_F(PushTest, IsToldAsItEndedWhateverTheHostDoesWithItsChildren) {
  Holder holder = hold();
  const guard::PushOptions there = {.directory = clone(), .remote = "origin", .ref = "main"};
  ASSERT_TRUE(guard::push(holder, there));
  const std::string hook = clone() + "/.git/hooks/pre-push";
  for (const bool reaps : {false, true}) {
    const std::string before = main();
    const std::string made = commit(reaps ? "two" : "one");
    write_text(hook, "#!/bin/sh\nexit 1\n");
    std::filesystem::permissions(hook, std::filesystem::perms::owner_all);
    {
      const Host host(reaps);
      const auto refused = guard::push(holder, there);
      ASSERT_NE(refused.error(), nullptr) << "told as done";
      EXPECT_EQ(refused.error()->code, Code::Failed) << refused.error()->message;
    }
    EXPECT_EQ(main(), before);
    std::filesystem::remove(hook);
    {
      const Host host(reaps);
      const auto pushed = guard::push(holder, there);
      ASSERT_TRUE(pushed) << pushed.error()->message;
      EXPECT_EQ(pushed->oid, made);
    }
    EXPECT_EQ(main(), made);
  }
}

TEST_F(PushTest, TellsFaultsAndConflictsApartFromRefusals) {
  Holder holder = hold();
  guard::PushOptions there = {.directory = dir_.path(), .remote = "origin", .ref = "main"};
  EXPECT_NE(guard::push(holder, there).error(), nullptr) << "no repository";
  there.directory = clone();
  there.ref = "+main";
  EXPECT_EQ(guard::push(holder, there).error()->code, Code::Invalid);
  there.ref = "main";
  there.fence_ref = "refs/aaa/";
  EXPECT_EQ(guard::push(holder, there).error()->code, Code::Invalid);
  there.fence_ref = "refs/zzz/";
  there.once = true;
  there.seal_commits = true;
  EXPECT_EQ(guard::push(holder, there).error()->code, Code::Invalid);
  there.seal_commits = false;
  commit("one");
  ASSERT_TRUE(guard::push(holder, there));
  EXPECT_EQ(git({"--git-dir", server(), "for-each-ref", "--format=%(refname)", "refs/zzz/"}),
            "refs/zzz/r");
  EXPECT_TRUE(guard::push(holder, there)->already);
  commit("two");
  const auto used = guard::push(holder, there);
  ASSERT_NE(used.get_if<guard::Refusal>(), nullptr);
  EXPECT_EQ(used.get_if<guard::Refusal>()->code, Code::Used);
  // The branch moved on at the server.
  there.once = false;
  git({"-C", clone(), "push", "-q", "origin", "HEAD:main"});
  git({"-C", clone(), "reset", "-q", "--hard", "HEAD~1"});
  commit("beside");
  const auto conflict = guard::push(holder, there);
  ASSERT_NE(conflict.error(), nullptr);
  EXPECT_EQ(conflict.error()->code, Code::Failed);
  EXPECT_TRUE(conflict.error()->message.starts_with("conflict: ")) << conflict.error()->message;
}

// A server that tells every push as done and takes it back. Of a path that is not looked at, unless
// one says so.
TEST_F(PushTest, LooksAtTheServersRefsWhereOneSaysSo) {
  Holder holder = hold();
  guard::PushOptions there = {.directory = clone(), .remote = "origin", .ref = "main"};
  commit("one");
  ASSERT_TRUE(guard::push(holder, there));
  const std::string stood = main();
  const std::string hook = cat(server(), "/hooks/post-receive");
  write_text(hook,
             "#!/bin/sh\nwhile read -r old new ref; do git update-ref \"$ref\" \"$old\"; done\n");
  std::filesystem::permissions(hook, std::filesystem::perms::owner_all);
  const std::string two = commit("two");
  there.look = "sometimes";
  EXPECT_EQ(guard::push(holder, there).error()->code, Code::Invalid);
  there.look = "always";
  const auto seen = guard::push(holder, there);
  ASSERT_NE(seen.error(), nullptr) << "told as done";
  EXPECT_EQ(seen.error()->code, Code::UnknownOutcome) << seen.error()->message;
  for (const char* believed : {"never", ""}) {
    there.look = believed;
    const auto done = guard::push(holder, there);
    ASSERT_TRUE(done) << believed << ": " << done.error()->message;
    EXPECT_EQ(done->oid, two);
  }
  EXPECT_EQ(main(), stood) << "the play was not met";
}

// Late and not superseded is accepted, unless both are asked for.
TEST_F(PushTest, RequireLiveRefusesOnceTheLeaseIsOver) {
  Holder holder = hold();
  const std::string page = dir_.file("page");
  const std::string staged = dir_.file("staged");
  std::filesystem::create_directory(staged);
  const guard::WriteOptions write = {.path = page, .body = "x", .require_live = true};
  const guard::PublishOptions publish = {
      .path = dir_.file("tree"), .staged = staged, .require_live = true};
  const guard::PushOptions push = {
      .directory = clone(), .remote = "origin", .ref = "main", .require_live = true};
  ASSERT_TRUE(guard::write(holder, write));
  ASSERT_TRUE(guard::publish(holder, publish));
  commit("one");
  ASSERT_TRUE(guard::push(holder, push));
  const std::string stood = main();
  commit("two");
  ASSERT_TRUE(holder.release());
  const auto refused = [](const auto& answer) {
    return answer.template get_if<guard::Refusal>() != nullptr;
  };
  EXPECT_TRUE(refused(guard::write(holder, write)));
  EXPECT_TRUE(refused(guard::publish(holder, publish)));
  EXPECT_TRUE(refused(guard::push(holder, push)));
  EXPECT_EQ(main(), stood);
  // Nobody took over: without it they count.
  EXPECT_TRUE(guard::write(holder, {.path = page, .body = "y"}));
  EXPECT_TRUE(guard::push(holder, {.directory = clone(), .remote = "origin", .ref = "main"}));
}

}  // namespace
}  // namespace stint::test
