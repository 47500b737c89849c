// How a guarded file is written: once, under conditions, with whose mode and through which names;
// what the dead have left.
// EVIDENCE-OF: G5
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <thread>

#include "base/sha256.h"
#include "guard/fence_file.h"
#include "tests/guard/file_fixture.h"

namespace stint::test {
namespace {

TEST_F(GuardFile, OnceIsOnce) {
  fences.issue(1);
  ASSERT_TRUE(done(once(1, "one", "k")));
  const auto again = once(1, "one", "k");
  ASSERT_TRUE(done(again));
  EXPECT_TRUE(std::get<guard::Written>(*again).already);
  EXPECT_EQ(std::get<guard::Written>(*again).digest, to_hex(sha256("one")));
  EXPECT_EQ(verdict_of(once(1, "two", "k")), core::Verdict::Used);
  EXPECT_EQ(verdict_of(once(1, "one", "other")), core::Verdict::Used);
  EXPECT_EQ(content(), "one");
  // A repeat is answered, not made again: what came after it stays.
  ASSERT_TRUE(done(write(1, "later")));
  EXPECT_TRUE(done(once(1, "one", "k")));
  EXPECT_EQ(content(), "later");
  fences.issue(2);
  EXPECT_TRUE(done(once(2, "two", "k")));
  EXPECT_EQ(kept_in(dir.path(), ".stage."), std::vector<std::string>{});
  EXPECT_EQ(kept_in(dir.path(), ".used.").size(), 1U);
}

TEST_F(GuardFile, ARepeatWhoseStageAHigherSealRemovedIsNotDone) {
  // What a writer leaves that died between its mark and its rename, after a seal of the next token
  // that has only removed the stage so far. spec/file.pml, GONE_IS_DONE
  fences.issue(1);
  ASSERT_TRUE(done(once(1, "one", "k")));
  std::vector<std::pair<std::string, std::string>> kept;
  for (const std::string& name : kept_in(dir.path())) {
    kept.emplace_back(dir.file(name), read_text(dir.file(name)));
  }
  ASSERT_EQ(kept.size(), 2U);
  ASSERT_TRUE(fs::remove(path));
  fences.issue(2);
  ASSERT_TRUE(done(seal(2)));
  for (const auto& [name, text] : kept) write_text(name, text);
  EXPECT_EQ(verdict_of(once(1, "one", "k")), core::Verdict::Stale);
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(GuardFile, ADamagedMarkRefuses) {
  fences.issue(1);
  ASSERT_TRUE(done(once(1, "one", "k")));
  write_text(dir.file(kept_in(dir.path(), ".used.")[0]), "?");
  EXPECT_FALSE(once(1, "one", "k"));
}

// On NFS a body that a seal on another machine removed cannot be written on: "stale file handle".
// Here it is its source that fails.
TEST_F(GuardFile, ABodyThatASealRemovedWhileItWasStagedIsRefusedAndNoFault) {
  for (const bool sealed : {true, false}) {
    fences.issue(sealed ? 1 : 3);
    int ends[2] = {-1, -1};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    const os::Fd body(ends[0]);
    os::Fd source(ends[1]);
    Result<guard::WriteAnswer> answer = unavailable("not yet");
    std::thread writer([&] {
      answer = guard::write_file({.path = path, .body_from = body.get()}, pass_with(sealed ? 1 : 3),
                                 &fences);
    });
    EXPECT_TRUE(wait_until([&] { return kept_in(dir.path(), ".stage.").size() == 1; }));
    if (sealed) {
      fences.issue(2);
      EXPECT_TRUE(done(seal(2)));
      EXPECT_EQ(kept_in(dir.path(), ".stage.").size(), 0U);
    }
    EXPECT_EQ(::write(body.get(), "unread", 6), 6);  // So that the end of its source is an error.
    source = os::Fd();
    writer.join();
    if (sealed) {
      EXPECT_EQ(verdict_of(answer), core::Verdict::Stale);
    } else {
      EXPECT_FALSE(answer) << "a fault stays one";
    }
    EXPECT_FALSE(fs::exists(path));
  }
}

TEST_F(GuardFile, IfMatchLooksAtWhatStands) {
  fences.issue(1);
  const auto with = [&](std::string digest, std::string_view body) {
    return guard::write_file({.path = path, .body = body, .if_match = std::move(digest)},
                             pass_with(1), &fences);
  };
  EXPECT_FALSE(done(with(to_hex(sha256("zero")), "one")));
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(done(with("none", "one")));
  const auto refused = with("none", "two");
  ASSERT_EQ(verdict_of(refused), core::Verdict::Stale);
  EXPECT_EQ(std::get<guard::Refused>(*refused).condition, guard::Condition::IfMatch);
  EXPECT_TRUE(done(with(to_hex(sha256("one")), "two")));
  EXPECT_EQ(content(), "two");
  EXPECT_FALSE(with("123", "x"));
  EXPECT_EQ(kept_in(dir.path(), ".stage."), std::vector<std::string>{});
}

TEST_F(GuardFile, RequireLiveAsksTheStore) {
  fences.issue(1);
  guard::Pass pass = pass_with(1);
  pass.require_live = true;
  EXPECT_TRUE(done(guard::write_file({.path = path, .body = "one"}, pass, &fences)));
  fences.live = false;
  const auto answer = guard::write_file({.path = path, .body = "two"}, pass, &fences);
  ASSERT_EQ(verdict_of(answer), core::Verdict::Stale);
  EXPECT_EQ(std::get<guard::Refused>(*answer).condition, guard::Condition::RequireLive);
  // Late but not superseded is accepted, unless asked for both.
  EXPECT_TRUE(done(write(1, "late")));
}

TEST_F(GuardFile, KeepsModeOwnerAndAttributes) {
  fences.issue(1);
  write_text(path, "old");
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  const bool root = ::geteuid() == 0;
  if (root) {
    ASSERT_EQ(::chown(path.c_str(), 1234, 2345), 0);
  }
  const bool attributes = ::setxattr(path.c_str(), "trusted.test", "v", 1, 0) == 0;
  ASSERT_TRUE(done(write(1, "new")));
  struct stat now {};
  ASSERT_EQ(::stat(path.c_str(), &now), 0);
  EXPECT_EQ(now.st_mode & 07777U, 0640U);
  if (root) {
    EXPECT_EQ(now.st_uid, 1234U);
    EXPECT_EQ(now.st_gid, 2345U);
  }
  char value = 0;
  if (attributes) {
    EXPECT_EQ(::getxattr(path.c_str(), "trusted.test", &value, 1), 1);
  }
  ASSERT_EQ(::stat(dir.file(".page.fence.1").c_str(), &now), 0);
  EXPECT_EQ(now.st_mode & 07777U, 0640U);
  if (root) {
    EXPECT_EQ(now.st_uid, 1234U);
  }
}

// Its fences had its mode: who had made them could not read them.
TEST_F(GuardFile, AFileThatIsOnlyWrittenIsWrittenAgain) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs to become somebody else";
  fences.issue(2);
  write_text(path, "old");
  ASSERT_EQ(::chown(path.c_str(), 65534, 65534), 0);
  ASSERT_EQ(::chmod(path.c_str(), 0200), 0);
  ASSERT_EQ(::chmod(dir.path().c_str(), 0777), 0);
  ASSERT_EQ(::setegid(65534), 0);
  ASSERT_EQ(::seteuid(65534), 0);
  const auto first = write(2, "one");
  const auto second = write(2, "two");
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_EQ(::setegid(0), 0);
  EXPECT_EQ(told(first), "done");
  EXPECT_EQ(told(second), "done");
  EXPECT_EQ(content(), "two");
}

TEST_F(GuardFile, ANewFileHasTheUsualMode) {
  fences.issue(1);
  const mode_t before = ::umask(027);
  ASSERT_TRUE(done(write(1, "new")));
  ::umask(before);
  struct stat now {};
  ASSERT_EQ(::stat(path.c_str(), &now), 0);
  EXPECT_EQ(now.st_mode & 07777U, 0640U);
}

TEST_F(GuardFile, FollowsLinksWithinTheDirectoryOnly) {
  fences.issue(1);
  fs::create_directory(dir.file("elsewhere"));
  write_text(dir.file("elsewhere/real"), "old");
  write_text(dir.file("near"), "old");
  fs::create_symlink("near", dir.file("to_near"));
  fs::create_symlink("elsewhere/real", dir.file("to_far"));
  fs::create_symlink("loop", dir.file("loop"));
  path = dir.file("to_near");
  EXPECT_TRUE(done(write(1, "new")));
  EXPECT_TRUE(fs::is_symlink(path));
  EXPECT_EQ(read_text(dir.file("near")), "new");
  path = dir.file("to_far");
  const auto refused = write(1, "new");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::Invalid);
  EXPECT_FALSE(seal(1));
  EXPECT_TRUE(done(
      guard::write_file({.path = path, .body = "new", .follow = true}, pass_with(1), &fences)));
  EXPECT_EQ(read_text(dir.file("elsewhere/real")), "new");
  EXPECT_TRUE(fs::exists(dir.file("elsewhere/.real.fence.1")));
  path = dir.file("loop");
  EXPECT_FALSE(write(1, "new"));
}

TEST_F(GuardFile, RefusesWhatIsNoFile) {
  fences.issue(1);
  fs::create_directory(dir.file("directory"));
  ASSERT_EQ(::mkfifo(dir.file("fifo").c_str(), 0600), 0);
  for (const std::string& name : {dir.file("directory"), dir.file("fifo"), dir.file("gone/page"),
                                  dir.file("near/page"), std::string("/"), dir.file("..")}) {
    path = name;
    EXPECT_FALSE(write(1, "x")) << name;
    EXPECT_FALSE(seal(1)) << name;
  }
  EXPECT_TRUE(kept_in(dir.path()).empty());
}

TEST_F(GuardFile, ALongNameIsRefusedBeforeAnythingIsMade) {
  fences.issue(Token::kMax);
  path = dir.file(std::string(guard::kLongestArtifactName, 'n'));
  EXPECT_TRUE(done(write(Token::kMax, "fits")));
  path = dir.file(std::string(guard::kLongestArtifactName + 1, 'n'));
  const auto answer = write(Token::kMax, "x");
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::Invalid);
  EXPECT_NE(answer.error().message.find("too long"), std::string::npos);
}

TEST_F(GuardFile, NoPermissionIsDeniedAndNothingIsLeft) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs to become somebody else";
  fences.issue(1);
  write_text(path, "old");
  ASSERT_EQ(::seteuid(65534), 0);
  const auto answer = write(1, "new");
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::Denied) << answer.error().message;
  EXPECT_EQ(content(), "old");
  EXPECT_TRUE(kept_in(dir.path()).empty());
}

TEST_F(GuardFile, AnotherUsersFileIsNotTakenOver) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs to become somebody else";
  fences.issue(1);
  write_text(path, "old");
  ASSERT_EQ(::chmod(dir.path().c_str(), 0777), 0);
  ASSERT_EQ(::seteuid(65534), 0);
  const auto answer = write(1, "new");
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("owner"), std::string::npos);
  EXPECT_EQ(content(), "old");
  EXPECT_TRUE(kept_in(dir.path(), ".stage.").empty());
}

TEST_F(GuardFile, ABodyFromADescriptor) {
  fences.issue(1);
  const std::string body(3'000'000, 'b');
  write_text(dir.file("body"), body);
  os::Directory here;
  os::Fd from;
  ASSERT_EQ(os::Directory::open(dir.path(), here), 0);
  ASSERT_EQ(here.open_existing("body", from), 0);
  const auto answer =
      guard::write_file({.path = path, .body = {}, .body_from = from.get(), .want_digest = true},
                        pass_with(1), &fences);
  ASSERT_TRUE(done(answer));
  EXPECT_EQ(std::get<guard::Written>(*answer).digest, to_hex(sha256(body)));
  EXPECT_EQ(content(), body);
}

TEST_F(GuardFile, TheNextSealRemovesWhatTheDeadLeft) {
  fences.issue(3);
  ASSERT_TRUE(done(seal(3)));
  const std::string ours = guard::line_of(generation_number(0), "r").hex();
  const std::string others = guard::line_of(generation_number(4), "r").hex();
  for (const std::string& name : {".page.stage.2." + ours, ".page.seal.2." + ours,
                                  ".page.used.2." + ours, ".page.stage.8." + others}) {
    write_text(dir.file(name), "x");
  }
  write_text(dir.file(".page.stage.3." + ours), "a body of this token, perhaps being written");
  write_text(dir.file(".page.stage.4." + ours), "a newer one's");
  write_text(dir.file(".other.stage.1." + ours), "another artifact's");
  ASSERT_TRUE(done(seal(3)));
  EXPECT_EQ(kept_in(dir.path()),
            (std::vector<std::string>{".other.stage.1." + ours, ".page.fence.3",
                                      ".page.stage.3." + ours, ".page.stage.4." + ours}));
}

// A tree that was staged when the artifact was still to be a directory.
TEST_F(GuardFile, ATreeThatTheDeadLeftIsNotInTheWayOfAFile) {
  fences.issue(2);
  const std::string tree =
      dir.file(".page.stage.1." + guard::line_of(generation_number(0), "r").hex());
  fs::create_directories(tree + "/sub");
  write_text(tree + "/sub/a", "x");
  EXPECT_EQ(told(seal(2)), "done");
  EXPECT_EQ(told(write(2, "two")), "done");
  EXPECT_EQ(kept_in(dir.path()), std::vector<std::string>{".page.fence.2"});
}

// The holder died after its fence had its name and before it removed the lower stage. Another
// process of that holder writes: the older body must not land on top of it afterwards.
TEST_F(GuardFile, AWriteFinishesTheSealOfADeadProcess) {
  fences.issue(2);
  ASSERT_TRUE(done(seal(2)));
  const std::string stage = ".page.stage.1." + guard::line_of(generation_number(0), "r").hex();
  write_text(dir.file(stage), "stale");
  ASSERT_TRUE(done(write(2, "two")));
  EXPECT_FALSE(fs::exists(dir.file(stage)));
}

TEST_F(GuardFile, OnANetworkMountTheLockIsTakenAndBrokenAloud) {
  fences.issue(1);
  const auto over = [&](std::string_view body) {
    return guard::write_file({.path = path, .body = body, .network = true}, pass_with(1), &fences);
  };
  const auto alone = over("one");
  ASSERT_TRUE(done(alone)) << told(alone);
  EXPECT_TRUE(std::get<guard::Written>(*alone).narrow.empty());
  os::Directory here;
  os::Fd lock;
  ASSERT_EQ(os::Directory::open(dir.path(), here), 0);
  ASSERT_EQ(here.open_existing(".page.guard.lock", lock), 0);
  ASSERT_EQ(os::try_lock(lock.get()), 0);
  const MonoTime before = now();
  const auto broken = over("two");
  EXPECT_GE(now() - before, Millis(4900));
  EXPECT_LT(now() - before, Millis(15'000));
  ASSERT_TRUE(done(broken));
  EXPECT_FALSE(std::get<guard::Written>(*broken).narrow.empty());
  EXPECT_EQ(content(), "two");
}

}  // namespace
}  // namespace stint::test
