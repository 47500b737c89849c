// A push that got no answer: it is told as done only if the branch has it, and as not done only if
// it has not and never will.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/text.h"
#include "tests/guard_git/git_world.h"
#include "tests/support/tcp_proxy.h"

namespace stint::test {
namespace {

using testing::Test;

class LostAnswer : public Test {
 protected:
  LostAnswer() {
    const std::string port = world.url().substr(sizeof "git://127.0.0.1:" - 1);
    proxy = std::make_unique<TcpProxy>(
        static_cast<std::uint16_t>(std::stoi(port.substr(0, port.find('/')))));
    grant = world.take("a");
    EXPECT_EQ(world.push(a, grant).exit_code, 0);
    world.git(a, {"remote", "set-url", "origin", cat("git://127.0.0.1:", proxy->port(), "/r.git")});
    EXPECT_EQ(world.push(a, grant, {"origin", "main"}).exit_code, 0);
    world.commit(a, "in danger");
  }
  // The first of its pushes meets the fault, what settles it does not.
  Finished push_once_hurt(const std::function<bool()>& hurt) {
    Child pushing(world.push_command(a, grant));
    EXPECT_TRUE(wait_until(hurt, Millis(20'000)));
    const auto end = pushing.wait(Millis(60'000));
    Finished out;
    out.exit_code = end ? end->code : std::nullopt;
    out.err = pushing.err();
    return out;
  }

  GitWorld world{Transport::Daemon};
  std::string a = world.clone("a");
  std::unique_ptr<TcpProxy> proxy;
  Grant grant;
};

TEST_F(LostAnswer, OfAPushThatLandedIsFoundOut) {
  proxy->cut_one_reply_after(1);
  const Finished done = push_once_hurt([&] { return proxy->counts().dropped_replies > 0; });
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(world.main(), world.head(a));
}

// What the user's pre-push hook prints was taken for git's own word that nothing had been sent: a
// push that had landed was told as "not reached, nothing was changed".
TEST_F(LostAnswer, IsOneWhateverTheUsersHookHasPrinted) {
  world.hook(a, "pre-push", "echo \"fatal: unable to access 'x': Connection refused\" >&2");
  proxy->cut_one_reply_after(1);
  const Finished done = push_once_hurt([&] { return proxy->counts().dropped_replies > 0; });
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(world.main(), world.head(a));
}

TEST_F(LostAnswer, OfAPushThatNeverArrivedIsMadeSureOf) {
  const std::string main = world.main();
  const std::string fence = world.fence();
  proxy->cut_one_request_after(1);
  const Finished done = push_once_hurt([&] { return proxy->counts().cut > 0; });
  EXPECT_EQ(done.exit_code, 1) << done.err;
  EXPECT_NE(done.err.find("can no longer land"), std::string::npos) << done.err;
  EXPECT_EQ(world.main(), main);
  EXPECT_NE(world.fence(), fence);  // moved past the lost one
  EXPECT_EQ(world.push(a, grant).exit_code, 0);
  EXPECT_EQ(world.main(), world.head(a));
}

TEST_F(LostAnswer, StaysUnknownWhileTheServerCannotBeAsked) {
  proxy->drop_replies_after(1, TcpProxy::Dropped::Cut);
  Child pushing(world.push_command(a, grant));
  ASSERT_TRUE(wait_until([&] { return proxy->counts().dropped_replies > 0; }, Millis(20'000)));
  proxy->refuse();
  const auto end = pushing.wait(Millis(60'000));
  ASSERT_TRUE(end);
  EXPECT_EQ(end->code, 14) << pushing.err();
}

// The first try of a seal gets no answer and goes on at the server; the second is not let in. That
// was told as "not sealed" (69), and the seal came after it.
TEST(LostSeal, StaysUnknownWhateverBecomesOfTheNextTry) {
  for (const std::string& more : {std::string(), std::string(";fallback=seal-commit")}) {
    SCOPED_TRACE(more);
    GitWorld world{Transport::Ssh};
    const Grant grant = world.take("a");
    const Barrier inside(world.dir().file("inside"));
    const std::string once = world.dir().file("once");
    world.server_hook("pre-receive", inside.script());
    write_text(once, "");
    // Of the first nothing comes back but what the server says before it is asked.
    write_text(
        world.dir().file("ssh"),
        cat("#!/bin/sh\nfor last; do :; done\ncase \"$last\" in *receive-pack*) ;; *) exec sh "
            "-c \"$last\" ;; esac\nrm ",
            once, " 2>/dev/null || exit 1\nsize=$(git receive-pack --advertise-refs ",
            world.repository(),
            " </dev/null | wc -c)\nexec 3<&0\nsh -c \"$last\" <&3 2>/dev/null | head -c $size "
            "2>/dev/null &\nexit 0\n"));
    world.server_config("receive.keepAlive", "0");  // it must not notice that nobody listens
    inside.arm();
    const std::string main = world.main();
    const auto sealed = world.seal(grant, false, more);
    ASSERT_FALSE(sealed);
    EXPECT_EQ(sealed.error().code, Code::UnknownOutcome) << sealed.error().message;
    EXPECT_TRUE(wait_until([&] { return inside.arrived(); }));
    EXPECT_TRUE(world.fence().empty() && world.main() == main);
    inside.let_go();
    EXPECT_TRUE(wait_until([&] { return !world.fence().empty() || world.main() != main; }))
        << "the play was not met";
  }
}

// The server is killed between its two renames: the branch is written, the fence is not moved.
class HalfPush : public Test {
 protected:
  HalfPush() { EXPECT_EQ(world.push(a, grant).exit_code, 0); }
  // `then`: what happens at the server before anything else gets there.
  Finished push_halved(const std::string& then,
                       std::vector<std::string> words = {"origin", "main"}) {
    const std::string script = world.dir().file("receive-pack");
    const std::string once = world.dir().file("once");
    const std::string busy = world.dir().file("busy");
    write_text(once, "");
    write_text(busy, "");
    // The client need not wait for what comes after the kill; its next push does.
    write_text(script,
               cat("#!/bin/sh\nif rm ", once, " 2>/dev/null; then\n",
                   "strace -f -qq -o /dev/null -e trace=rename -e "
                   "inject=rename:signal=KILL:when=2 git-receive-pack \"$@\"\ncd ",
                   world.repository(), "\n", then, "\nrm ", busy, "\nexit 1\nfi\nwhile [ -e ", busy,
                   " ]; do sleep 0.01; done\nexec git-receive-pack \"$@\"\n"));
    std::filesystem::permissions(script, std::filesystem::perms::owner_all);
    world.git(a, {"config", "remote.origin.receivepack", script});
    pushed = world.commit(a, "halved");
    return world.push(a, grant, std::move(words));
  }
  static std::string unlock() {
    return "rm -f HEAD.lock refs/stint/fence/r.lock refs/heads/*.lock";
  }

  GitWorld world;
  std::string a = world.clone("a");
  Grant grant = world.take("a");
  std::string pushed;
};

TEST_F(HalfPush, StaysUnknownWhileTheLockIsThereAndIsMendedByTheSamePush) {
  const std::string fence = world.fence();
  const Finished done = push_halved("");
  EXPECT_EQ(done.exit_code, 14) << done.err;
  EXPECT_EQ(world.main(), pushed);
  EXPECT_EQ(world.fence(), fence);
  const Finished locked = world.push(a, grant);
  EXPECT_EQ(locked.exit_code, 69) << locked.err;
  EXPECT_NE(locked.err.find(".lock"), std::string::npos) << locked.err;
  EXPECT_NE(locked.err.find("The branch has what you push already"), std::string::npos)
      << locked.err;
  ASSERT_TRUE(std::filesystem::remove(world.repository() + "/refs/stint/fence/r.lock"));
  const Finished again = world.push(a, grant);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(world.main(), pushed);
  EXPECT_NE(world.fence(), fence);
}

TEST_F(HalfPush, IsToldAsDoneAlsoWhenSomebodyWroteOnTopOfIt) {
  const Finished done = push_halved(
      cat(unlock(),
          "\ngit update-ref refs/heads/main $(git commit-tree -p refs/heads/main -m top "
          "refs/heads/main^{tree})"));
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(world.at("refs/heads/main~1"), pushed) << done.err;
}

TEST_F(HalfPush, InModeOnceIsUsedUp) {
  const Finished done = push_halved(unlock(), {"origin", "main", "--mode", "once"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(world.main(), pushed);
  EXPECT_NE(world.fence_line("used"), "");
  world.commit(a, "another");
  EXPECT_EQ(world.push(a, grant, {"origin", "main", "--mode", "once"}).exit_code, 13);
}

// A branch that is made is put in place after the fence: the same push again makes it.
TEST_F(HalfPush, ThatMakesABranchIsDoneWhenItIsThere) {
  const Finished done = push_halved(unlock(), {"origin", "main:refs/heads/side"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_EQ(world.at("refs/heads/side"), pushed);
}

}  // namespace
}  // namespace stint::test
