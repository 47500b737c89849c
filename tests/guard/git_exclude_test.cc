// Fences in the way: git does not take them, and whoever reads one learns nobody's name from it.
#include "guard/git_exclude.h"

#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "base/random.h"
#include "tests/guard/site_fixture.h"

namespace stint::test {
namespace {

class GitExclude : public ::testing::Test {
 protected:
  GitExclude() { git(".", {"init", "-q", "tree"}); }
  std::string git(const std::string& folder, std::vector<std::string> words) {
    words.insert(words.begin(), {"git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-c",
                                 "protocol.file.allow=always", "-C", dir.file(folder)});
    const Finished done = run({.argv = words, .env = {{"GIT_CONFIG_GLOBAL", "/dev/null"}}});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return done.out;
  }
  bool write(const std::string& name, std::uint64_t token) {
    fences.issue(token);
    const auto answer =
        guard::write_file({.path = dir.file(name), .body = "x"}, pass_with(token), &fences);
    EXPECT_TRUE(done(answer)) << told(answer);
    return done(answer);
  }
  // What `git add -A` would take.
  std::string seen(const std::string& folder) {
    return git(folder, {"status", "--porcelain", "--untracked-files=all"});
  }
  std::string exclude() const { return read_text(dir.file("tree/.git/info/exclude")); }
  static int count(const std::string& text, std::string_view line) {
    int out = 0;
    for (const std::string_view one : split(text, '\n')) out += one == line ? 1 : 0;
    return out;
  }
  void expect_each_once() const {
    for (const std::string_view pattern : guard::git_patterns()) {
      EXPECT_EQ(count(exclude(), pattern), 1) << pattern << exclude();
    }
  }

  TempDir dir;
  IssuingFences fences;
};

TEST_F(GitExclude, NoFenceIsAddedToGit) {
  fs::create_directories(dir.file("tree/sub/deep"));
  fs::create_directories(dir.file("staged"));
  for (const char* name : {"tree/page", "tree/sub/deep/page"}) ASSERT_TRUE(write(name, 1));
  fences.issue(1);
  ASSERT_TRUE(done(guard::publish_directory(
      {.path = dir.file("tree/site"), .staged = dir.file("staged")}, pass_with(1), &fences)));
  for (const char* name : {"tree/.page.carried.1.", "tree/.page.stage.1.", "tree/.page.used.1.",
                           "tree/.page.seal.1.", "tree/.page.trash.1."}) {
    write_text(dir.file(cat(name, std::string(32, 'a'))), "x");
  }
  EXPECT_EQ(seen("tree"), "?? page\n?? sub/deep/page\n");
  // Names of the user's own are the user's.
  for (const char* name : {".env.stage.local", ".a.fence.mine", ".x.lock"}) {
    write_text(dir.file(cat("tree/", name)), "x");
    EXPECT_NE(seen("tree").find(name), std::string::npos) << name;
  }
}

TEST_F(GitExclude, IsSaidOnceAndWhatStoodThereStays) {
  const std::string before = "# mine\n*.o\n.*.fence.[0-9]*\nlast without an end";
  write_text(dir.file("tree/.git/info/exclude"), before);
  for (std::uint64_t token = 1; token <= 3; ++token) ASSERT_TRUE(write("tree/page", token));
  EXPECT_TRUE(exclude().starts_with(before + "\n")) << exclude();
  expect_each_once();
}

TEST_F(GitExclude, IsMadeWhereGitHasNone) {
  fs::remove_all(dir.file("tree/.git/info"));
  ASSERT_TRUE(write("tree/page", 1));
  EXPECT_EQ(seen("tree"), "?? page\n");
  expect_each_once();
}

TEST_F(GitExclude, ManyAtOnceSayItOnce) {
  constexpr int kWriters = 8;
  fences.issue(1);
  std::vector<std::thread> writers;
  for (int i = 0; i < kWriters; ++i) {
    writers.emplace_back([&, i] {
      EXPECT_TRUE(done(guard::write_file({.path = dir.file(cat("tree/page", i)), .body = "x"},
                                         pass_with(1), &fences)));
    });
  }
  for (std::thread& one : writers) one.join();
  expect_each_once();
}

TEST_F(GitExclude, AlsoInLinkedWorkTreesAndInSubmodules) {
  git("tree", {"commit", "-q", "--allow-empty", "-m", "first"});
  git("tree", {"worktree", "add", "-q", dir.file("linked")});
  ASSERT_TRUE(write("linked/page", 1));
  EXPECT_EQ(seen("linked"), "?? page\n");
  expect_each_once();  // in the repository that both share
  git(".", {"init", "-q", "outer"});
  git("outer", {"submodule", "add", "-q", dir.file("tree"), "inner"});
  ASSERT_TRUE(write("outer/inner/page", 2));
  EXPECT_EQ(seen("outer/inner"), "?? page\n");
}

// A write does not hang on it.
TEST_F(GitExclude, WhatCannotBeSaidDoesNotStopAWrite) {
  const std::string file = dir.file("tree/.git/info/exclude");
  const std::string elsewhere = dir.file("elsewhere");
  write_text(elsewhere, "mine\n");
  fs::remove(file);
  fs::create_symlink(elsewhere, file);
  ASSERT_TRUE(write("tree/page", 1));
  EXPECT_EQ(read_text(elsewhere), "mine\n");
  fs::remove(file);
  fs::create_directory(file);
  ASSERT_TRUE(write("tree/page", 2));
  write_text(dir.file("tree/.git/x"), "");
  fs::remove_all(dir.file("tree/.git"));
  write_text(dir.file("tree/.git"), "gitdir: /no/such/place\n");
  ASSERT_TRUE(write("tree/page", 3));
}

// Whoever may plant a .git above a folder does not make others write elsewhere.
TEST_F(GitExclude, AnothersRepositoryIsLeftAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs to become somebody else";
  const std::string before = exclude();
  ASSERT_EQ(::chown(dir.file("tree/.git").c_str(), 65534, 65534), 0);
  ASSERT_TRUE(write("tree/page", 1));
  EXPECT_EQ(exclude(), before);
  ASSERT_EQ(::chown(dir.file("tree/.git").c_str(), 0, 0), 0);
  ASSERT_EQ(::chown(dir.file("tree/.git/info").c_str(), 65534, 65534), 0);
  ASSERT_TRUE(write("tree/page", 2));
  EXPECT_EQ(exclude(), before);
}

TEST_F(GitExclude, AFenceSaysNobodysName) {
  SeededRandom chance(3);
  fences.issue(5);
  guard::Pass pass = pass_with(5);
  pass.claim = Claim::make(chance);
  pass.owner = Owner::parse("host-of-mine").value();
  auto request = seal_with(pass);
  request.adopt = guard::SealRequest::Adoption{"a reason", "an operator"};
  ASSERT_TRUE(done(guard::seal_file(dir.file("tree/page"), request, &fences)));
  const std::string text = read_text(dir.file("tree/.page.fence.5"));
  for (const std::string& secret :
       {pass.claim->hex(), pass.claim->hash().hex().substr(0, 8), std::string("host-of-mine"),
        std::string("operator"), std::string("reason")}) {
    EXPECT_EQ(text.find(secret), std::string::npos) << text;
  }
  // And yet another claim of this token is told apart.
  pass.claim = Claim::make(chance);
  EXPECT_FALSE(guard::seal_file(dir.file("tree/page"), seal_with(pass), &fences));
}

TEST_F(GitExclude, AFenceOfAnotherFormatIsToldWithBothNumbers) {
  fences.issue(1);
  ASSERT_TRUE(write("tree/page", 1));
  std::string text = read_text(dir.file("tree/.page.fence.1"));
  ASSERT_TRUE(text.starts_with("stint fence 2\n"));
  text[12] = '1';
  write_text(dir.file("tree/.page.fence.1"), text);
  const auto answer =
      guard::write_file({.path = dir.file("tree/page"), .body = "y"}, pass_with(1), &fences);
  ASSERT_FALSE(answer);
  EXPECT_NE(answer.error().message.find("its format is '1', and this stint reads and writes 2"),
            std::string::npos)
      << answer.error().message;
}

}  // namespace
}  // namespace stint::test
