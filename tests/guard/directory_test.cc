// The guard of a directory: the whole old tree or the whole new one, and never a stale one.
// EVIDENCE-OF: G5
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "guard/fence_file.h"
#include "tests/guard/site_fixture.h"

namespace stint::test {
namespace {

class GuardDirectory : public ::testing::Test {
 protected:
  GuardDirectory() { make_tree("staged", "one"); }
  void make_tree(std::string_view name, std::string_view text) const {
    const fs::path root = dir.file(name);
    fs::remove_all(root);
    fs::create_directories(root / "sub/deep");
    write_text(root / "a", text);
    write_text(root / "sub/deep/b", text);
    fs::create_symlink("sub/deep/b", root / "link");
  }
  Result<guard::WriteAnswer> publish(std::uint64_t token, bool once = false) {
    guard::Pass pass = pass_with(token);
    if (once) pass.mode = core::FenceMode::Once;
    return guard::publish_directory({.path = path, .staged = dir.file("staged")}, pass, &fences);
  }
  std::string published() const {
    const std::string a = read_text(path + "/a");
    return a == read_text(path + "/sub/deep/b") && a == read_text(path + "/link") ? a : "torn";
  }

  MemoryDir dir;
  std::string path = dir.file("site");
  IssuingFences fences;
};

TEST_F(GuardDirectory, PublishesANewAndAnExistingDirectory) {
  fences.issue(1);
  const auto first = publish(1);
  ASSERT_TRUE(done(first)) << told(first);
  EXPECT_EQ(published(), "one");
  make_tree("staged", "two");
  ASSERT_TRUE(done(publish(1)));
  EXPECT_EQ(published(), "two");
  EXPECT_EQ(kept_in(dir.path()), std::vector<std::string>{".site.fence.1"});
  EXPECT_EQ(read_text(dir.file("staged/a")), "two");  // left as it is
}

TEST_F(GuardDirectory, ALowerTokenIsStaleAndItsStageGoes) {
  fences.issue(2);
  const std::string stage =
      dir.file(".site.stage.1." + guard::line_of(generation_number(0), "r").hex());
  fs::create_directories(stage + "/x/y");
  write_text(stage + "/x/y/z", "stale");
  ASSERT_TRUE(done(guard::seal_directory(path, seal_with(pass_with(2)), &fences)));
  EXPECT_EQ(kept_in(dir.path()), std::vector<std::string>{".site.fence.2"});
  EXPECT_EQ(verdict_of(publish(1)), core::Verdict::Stale);
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(GuardDirectory, UnderWarnItIsPublishedAllTheSameAndNoFenceMoves) {
  fences.issue(2);
  ASSERT_TRUE(done(publish(2)));
  make_tree("staged", "late");
  guard::Pass late = pass_with(1);
  late.warn = true;
  const auto answer =
      guard::publish_directory({.path = path, .staged = dir.file("staged")}, late, &fences);
  ASSERT_TRUE(done(answer)) << told(answer);
  const auto& written = std::get<guard::Written>(*answer);
  ASSERT_TRUE(written.warned);
  EXPECT_EQ(written.warned->verdict, core::Verdict::Stale);
  EXPECT_EQ(published(), "late");
  EXPECT_EQ(kept_in(dir.path()), std::vector<std::string>{".site.fence.2"});
}

TEST_F(GuardDirectory, KeepsModesTimesAndTheShapeOfTheTree) {
  fences.issue(1);
  ASSERT_EQ(::chmod(dir.file("staged/a").c_str(), 0751), 0);
  ASSERT_EQ(::chmod(dir.file("staged/sub").c_str(), 0555), 0);
  fs::create_directory(dir.file("staged/empty"));
  const auto when = fs::last_write_time(dir.file("staged/a"));
  ASSERT_TRUE(done(publish(1)));
  struct stat now {};
  ASSERT_EQ(::stat((path + "/a").c_str(), &now), 0);
  EXPECT_EQ(now.st_mode & 07777U, 0751U);
  ASSERT_EQ(::stat((path + "/sub").c_str(), &now), 0);
  EXPECT_EQ(now.st_mode & 07777U, 0555U);
  EXPECT_EQ(fs::last_write_time(path + "/a"), when);
  EXPECT_TRUE(fs::is_directory(path + "/empty"));
  EXPECT_TRUE(fs::is_symlink(path + "/link"));
  ASSERT_TRUE(done(publish(1)));  // the tree with a directory that nobody may write to is removed
  EXPECT_EQ(kept_in(dir.path()).size(), 1U);
  ASSERT_EQ(::chmod(dir.file("staged/sub").c_str(), 0755), 0);
  ASSERT_EQ(::chmod((path + "/sub").c_str(), 0755), 0);
}

TEST_F(GuardDirectory, OnceIsOnce) {
  fences.issue(1);
  ASSERT_TRUE(done(publish(1, true)));
  const auto again = publish(1, true);
  ASSERT_TRUE(done(again));
  EXPECT_TRUE(std::get<guard::Written>(*again).already);
  make_tree("staged", "two");
  EXPECT_EQ(verdict_of(publish(1, true)), core::Verdict::Used);
  EXPECT_EQ(published(), "one");
  EXPECT_TRUE(kept_in(dir.path(), ".stage.").empty());
  EXPECT_TRUE(kept_in(dir.path(), ".trash.").empty());
}

TEST_F(GuardDirectory, FromAnotherFileSystem) {
  fences.issue(1);
  const TempDir other;
  fs::copy(dir.file("staged"), other.file("staged"),
           fs::copy_options::recursive | fs::copy_options::copy_symlinks);
  struct stat here {};
  struct stat there {};
  ASSERT_EQ(::stat(dir.path().c_str(), &here), 0);
  ASSERT_EQ(::stat(other.path().c_str(), &there), 0);
  if (here.st_dev == there.st_dev) GTEST_SKIP() << "only one file system at hand";
  const auto answer = guard::publish_directory({.path = path, .staged = other.file("staged")},
                                               pass_with(1), &fences);
  ASSERT_TRUE(done(answer)) << told(answer);
  EXPECT_EQ(published(), "one");
}

TEST_F(GuardDirectory, BadInputChangesNothing) {
  fences.issue(1);
  ASSERT_TRUE(done(publish(1)));
  write_text(dir.file("file"), "x");
  fs::create_directory_symlink(dir.file("staged"), dir.file("far"));
  const auto from = [&](const std::string& staged) {
    return guard::publish_directory({.path = path, .staged = staged}, pass_with(1), &fences);
  };
  for (const std::string& staged :
       {dir.file("gone"), dir.file("file"), path, path + "/sub", dir.path()}) {
    EXPECT_FALSE(from(staged)) << staged;
  }
  for (const std::string& target : {dir.file("file"), dir.file("far"), dir.file("gone/site")}) {
    EXPECT_FALSE(guard::publish_directory({.path = target, .staged = dir.file("staged")},
                                          pass_with(1), &fences))
        << target;
  }
  ASSERT_EQ(::mkfifo(dir.file("staged/fifo").c_str(), 0600), 0);
  EXPECT_FALSE(publish(1));
  EXPECT_EQ(published(), "one");
  EXPECT_TRUE(kept_in(dir.path(), ".stage.").empty());
}

// The fence of a directory is the same as a file's: what it is not, refuses.
TEST_F(GuardDirectory, FencesThatAreNotWhatTheyShouldBeAreRefused) {
  fences.issue(2);
  ASSERT_TRUE(done(publish(2)));
  make_tree("staged", "two");
  const std::string fence = dir.file(".site.fence.2");
  const std::string good = read_text(fence);
  for (const std::string& text : {std::string(), std::string("garbage"), good.substr(0, 20)}) {
    write_text(fence, text);
    EXPECT_FALSE(publish(2)) << text;
    EXPECT_FALSE(guard::seal_directory(path, seal_with(pass_with(2)), &fences)) << text;
  }
  fs::remove(fence);
  const auto missing = publish(2);
  ASSERT_FALSE(missing) << "it had been sealed";
  EXPECT_NE(missing.error().message.find("missing"), std::string::npos);
  write_text(fence, good);
  guard::Pass foreign = pass_with(2);
  foreign.generation = generation_number(3);
  EXPECT_FALSE(done(
      guard::publish_directory({.path = path, .staged = dir.file("staged")}, foreign, &fences)));
  EXPECT_EQ(verdict_of(publish(3)), core::Verdict::NeverIssued);
  EXPECT_EQ(published(), "one");
  ASSERT_TRUE(done(publish(2)));
  EXPECT_EQ(published(), "two");
}

TEST_F(GuardDirectory, AFenceThatWasOnlyAboutToBeMadeIsNotMissing) {
  fences.targets = {guard::directory_target(path).value()};
  fences.sealing = fences.targets;
  fences.issue(1);
  EXPECT_TRUE(done(publish(1)));
  EXPECT_TRUE(fences.sealing.empty());
}

TEST_F(GuardDirectory, NoPermissionIsDeniedAndNothingIsLeft) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs to become somebody else";
  fences.issue(1);
  ASSERT_EQ(::chmod(dir.path().c_str(), 0755), 0);
  ASSERT_EQ(::seteuid(65534), 0);
  const auto answer = publish(1);
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::Denied) << answer.error().message;
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(kept_in(dir.path()).empty());
}

// As cp does: it would run as whoever published it.
TEST_F(GuardDirectory, AProgramOfAnotherUserDoesNotRunAsTheOneWhoPublishesIt) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs to become somebody else";
  fences.issue(1);
  ASSERT_EQ(::chmod(dir.file("staged/a").c_str(), 06755), 0);
  ASSERT_EQ(::chmod(dir.path().c_str(), 0777), 0);
  ASSERT_EQ(::seteuid(65534), 0);
  const auto answer = publish(1);
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_EQ(told(answer), "done");
  struct stat now {};
  ASSERT_EQ(::stat((path + "/a").c_str(), &now), 0);
  EXPECT_EQ(now.st_uid, 65534U);
  EXPECT_EQ(now.st_mode & 07777U, 0755U);
}

// Readers that open paths while trees change places never find a mixture or nothing.
TEST_F(GuardDirectory, ReadersSeeAWholeTree) {
  fences.issue(1);
  ASSERT_TRUE(done(publish(1)));
  std::atomic<bool> stop = false;
  std::atomic<int> torn = 0;
  std::atomic<int> looks = 0;
  std::thread reader([&] {
    while (!stop) {
      os::Directory tree;
      if (os::Directory::open(path, tree) != 0) {
        ++torn;
        continue;
      }
      // Through one descriptor: the same tree, until it is removed.
      std::string a;
      std::string b;
      os::FileFacts facts;
      os::Directory sub;
      os::Directory deep;
      const bool whole =
          tree.read("a", 100, a, facts) == 0 && tree.open_directory("sub", sub) == 0 &&
          sub.open_directory("deep", deep) == 0 && deep.read("b", 100, b, facts) == 0;
      if (whole && a != b) ++torn;
      ++looks;
    }
  });
  for (int i = 0; i < 200; ++i) {
    make_tree("staged", cat("text ", i));
    ASSERT_TRUE(done(publish(1)));
  }
  stop = true;
  reader.join();
  EXPECT_EQ(torn, 0);
  EXPECT_GT(looks, 0);
}

}  // namespace
}  // namespace stint::test
