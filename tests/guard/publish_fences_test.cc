// Fences inside a tree that is published: those of STAGED never get in, those of the live tree
// stand afterwards, also what a seal raises meanwhile, and the holders inside go on. EVIDENCE-OF:
// G5
#include <sys/stat.h>

#include "guard/fence_file.h"
#include "guard/path_check.h"
#include "tests/guard/site_fixture.h"

namespace stint::test {
namespace {

class PublishFences : public ::testing::Test {
 protected:
  PublishFences() {
    tree("out", "new");
    tree("site", "old");
  }
  void tree(std::string_view name, std::string_view text) const {
    fs::create_directories(dir.file(cat(name, "/sub/deep")));
    write_text(dir.file(cat(name, "/a")), text);
    write_text(dir.file(cat(name, "/sub/deep/b")), text);
  }
  static guard::Pass of(std::string_view resource, std::uint64_t token) {
    guard::Pass out = pass_with(token);
    out.resource = ResourceName::parse(resource).value();
    return out;
  }
  Result<guard::WriteAnswer> publish(bool once = false) {
    guard::Pass pass = of("site", 1);
    if (once) pass.mode = core::FenceMode::Once;
    return guard::publish_directory({.path = dir.file("site"), .staged = dir.file("out")}, pass,
                                    &of_site);
  }
  Result<guard::WriteAnswer> write(const std::string& name, std::uint64_t token) {
    return guard::write_file({.path = dir.file(cat("site/", name)), .body = cat("by ", token)},
                             pass_with(token), &fences);
  }
  Result<guard::SealAnswer> seal(const std::string& name, std::uint64_t token) {
    return guard::seal_file(dir.file(cat("site/", name)), seal_with(pass_with(token)), &fences);
  }
  void issue(std::uint64_t token) { fences.issue(token); }
  std::string here(const std::string& name) const { return read_text(dir.file("site/" + name)); }
  // All that guards keep inside of the live tree.
  std::vector<std::string> inside() const {
    std::vector<std::string> out;
    for (const auto& entry : fs::recursive_directory_iterator(dir.file("site"))) {
      const std::string name = entry.path().filename();
      if (name.starts_with('.')) out.push_back(fs::relative(entry.path(), dir.file("site")));
    }
    std::ranges::sort(out);
    return out;
  }

  MemoryDir dir;
  IssuingFences fences;   // of the resource whose files are inside
  IssuingFences of_site;  // of the resource that is published
  void SetUp() override { of_site.issue(1); }
};

// `cp -a live out`, and the fence that the copy had is lower than what stands by then.
TEST_F(PublishFences, OfACopyNeverReplaceTheLiveOnes) {
  issue(1);
  ASSERT_TRUE(done(write("a", 1)));
  fs::remove_all(dir.file("out"));
  fs::copy(dir.file("site"), dir.file("out"), fs::copy_options::recursive);
  issue(2);
  ASSERT_TRUE(done(seal("a", 2)));
  ASSERT_TRUE(done(publish())) << told(publish());
  EXPECT_EQ(verdict_of(write("a", 1)), core::Verdict::Stale);
  EXPECT_TRUE(done(write("a", 2)));
  EXPECT_EQ(here("a"), "by 2");
  EXPECT_EQ(inside(), std::vector<std::string>{".a.fence.2"});
}

TEST_F(PublishFences, AndStagesOfStagedNeverGetIn) {
  const std::string nonce(32, 'b');
  for (const std::string& name :
       {std::string(".a.fence.9"), cat(".a.fence.9.", nonce), cat(".a.stage.9.", nonce),
        cat(".a.used.9.", nonce), cat(".a.seal.9.", nonce), cat(".a.trash.9.", nonce)}) {
    write_text(dir.file(cat("out/", name)), "x");
    write_text(dir.file(cat("out/sub/deep/", name)), "x");
  }
  fs::create_directories(dir.file(cat("out/.sub.stage.9.", nonce, "/x")));
  write_text(dir.file("out/.a.fence.mine"), "an artifact of the user's");
  ASSERT_TRUE(done(publish()));
  EXPECT_EQ(inside(), std::vector<std::string>{".a.fence.mine"});
  EXPECT_EQ(here("a"), "new");
}

// Once: what a guard keeps in STAGED is no part of what is published.
TEST_F(PublishFences, OfStagedDoNotMakeItAnotherTree) {
  ASSERT_TRUE(done(publish(true)));
  write_text(dir.file("out/.a.fence.9"), "x");
  const auto again = publish(true);
  ASSERT_TRUE(done(again)) << told(again);
  EXPECT_TRUE(std::get<guard::Written>(*again).already);
}

TEST_F(PublishFences, HoldersInsideGoOnAndOlderOnesAreRefused) {
  issue(2);
  for (const char* name : {"a", "sub/deep/b"}) ASSERT_TRUE(done(write(name, 2)));
  fs::create_directories(dir.file("site/gone/far"));
  ASSERT_TRUE(done(write("gone/far/c", 2)));  // STAGED has no such folder
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(done(publish()));
    EXPECT_EQ(here("a"), "new");
    for (const char* name : {"a", "sub/deep/b", "gone/far/c"}) {
      EXPECT_EQ(verdict_of(write(name, 1)), core::Verdict::Stale) << name;
      const auto written = write(name, 2);
      EXPECT_TRUE(done(written)) << name << told(written);
    }
  }
  ASSERT_TRUE(done(publish()));
  issue(3);
  EXPECT_EQ(verdict_of(write("a", 2)), core::Verdict::Stale);  // nobody has sealed with 3
  EXPECT_TRUE(done(write("a", 3)));
  const std::string life = guard::line_of(generation_number(0), "r").hex();
  EXPECT_EQ(inside(), (std::vector<std::string>{".a.fence.3", cat("gone/far/.c.carried.2.", life),
                                                cat("sub/deep/.b.carried.2.", life)}));
}

TEST_F(PublishFences, WhoIsNotTheNewestCannotTellAndIsRefused) {
  issue(2);
  ASSERT_TRUE(done(write("a", 2)));
  ASSERT_TRUE(done(publish()));
  fences.reachable = false;
  EXPECT_FALSE(write("a", 2));
  EXPECT_EQ(verdict_of(write("a", 1)), core::Verdict::Stale);
  fences.reachable = true;
  EXPECT_TRUE(done(write("a", 2)));
  fences.reachable = false;
  EXPECT_TRUE(done(write("a", 2)));  // and from then on without it
}

TEST_F(PublishFences, AnotherResourceIsForeignAfterwardsToo) {
  issue(2);
  ASSERT_TRUE(done(write("a", 2)));
  ASSERT_TRUE(done(publish()));
  IssuingFences others;
  others.issue(9);
  const auto answer =
      guard::write_file({.path = dir.file("site/a"), .body = "x"}, of("other", 9), &others);
  EXPECT_EQ(verdict_of(answer), core::Verdict::Foreign);
}

TEST_F(PublishFences, OfDirectoriesInsideAndMarksOfModeOnceComeAlong) {
  issue(2);
  ASSERT_TRUE(done(guard::seal_directory(dir.file("site/sub"), seal_with(pass_with(2)), &fences)));
  guard::Pass once = pass_with(2);
  once.mode = core::FenceMode::Once;
  once.key = "k";
  const auto write_once = [&](const char* body) {
    return guard::write_file({.path = dir.file("site/a"), .body = body}, once, &fences);
  };
  ASSERT_TRUE(done(write_once("only")));
  ASSERT_TRUE(done(publish()));
  const auto again = write_once("only");
  ASSERT_TRUE(done(again)) << told(again);
  EXPECT_TRUE(std::get<guard::Written>(*again).already);
  EXPECT_EQ(verdict_of(write_once("other")), core::Verdict::Used);
  EXPECT_EQ(
      verdict_of(guard::seal_directory(dir.file("site/sub"), seal_with(pass_with(1)), &fences)),
      core::Verdict::Stale);
}

// A folder is as it was, but for what guards of other files keep there.
TEST_F(PublishFences, AreTakenAwayWithTheirGuard) {
  issue(2);
  const auto at = [&](const char* words) {
    return guard::uninstall_path(guard::parse_target(words, dir.path()).value());
  };
  ASSERT_TRUE(done(write("a", 2)));
  ASSERT_TRUE(done(write("sub/deep/b", 2)));
  ASSERT_TRUE(done(publish(true)));
  guard::Pass once = pass_with(2);
  once.mode = core::FenceMode::Once;
  ASSERT_TRUE(done(guard::write_file({.path = dir.file("site/a"), .body = "x", .network = true},
                                     once, &fences)));
  ASSERT_EQ(inside().size(), 4U);  // a fence, a mark, a lock, and what came along
  for (const char* words : {"file:site/sub/deep/b", "file:site/a", "dir:site"}) {
    const auto gone = at(words);
    ASSERT_TRUE(gone) << gone.error().message;
    EXPECT_GT(gone->files, 0U) << words;
  }
  EXPECT_TRUE(inside().empty());
  EXPECT_TRUE(kept_in(dir.path()).empty());
  EXPECT_EQ(here("a"), "x");
}

// What cannot be understood refuses everything, there as here.
TEST_F(PublishFences, ThatAreTornStayTorn) {
  issue(2);
  write_text(dir.file("site/.a.fence.7"), "?");
  ASSERT_TRUE(done(publish()));
  EXPECT_EQ(inside(), std::vector<std::string>{".a.fence.7"});
  EXPECT_FALSE(write("a", 2));
}

TEST_F(PublishFences, WithoutAPlaceInStagedAreAClearRefusal) {
  issue(2);
  ASSERT_TRUE(done(write("sub/deep/b", 2)));
  for (const bool link : {false, true}) {
    fs::remove_all(dir.file("out/sub"));
    if (link) {
      fs::create_directory_symlink(dir.path(), dir.file("out/sub"));
    } else {
      write_text(dir.file("out/sub"), "a file");
    }
    const auto answer = publish();
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Code::Invalid) << answer.error().message;
    EXPECT_NE(answer.error().message.find("sub"), std::string::npos);
    EXPECT_EQ(here("a"), "old");
    EXPECT_TRUE(kept_in(dir.path(), ".stage.").empty());
  }
}

TEST_F(PublishFences, KeepTheirModesAndTheirOwners) {
  issue(2);
  ASSERT_EQ(::chmod(dir.file("site/a").c_str(), 0640), 0);
  ASSERT_TRUE(done(write("a", 2)));
  struct stat before {};
  ASSERT_EQ(::stat(dir.file("site/.a.fence.2").c_str(), &before), 0);
  ASSERT_TRUE(done(publish()));
  const auto kept = inside();
  ASSERT_EQ(kept.size(), 1U);
  struct stat after {};
  ASSERT_EQ(::stat(dir.file(cat("site/", kept[0])).c_str(), &after), 0);
  EXPECT_EQ(after.st_mode, before.st_mode);
  EXPECT_EQ(after.st_uid, before.st_uid);
}

// A crash between the exchange and the last step leaves the former tree under its stage's name;
// whoever takes that away hands over what was raised in it.
TEST_F(PublishFences, OfATreeThatACrashLeftComeAlongWhenItIsTakenAway) {
  issue(2);
  ASSERT_TRUE(done(write("a", 2)));
  for (const char* kind : {"stage", "trash"}) {
    fs::rename(dir.file("site"), dir.file(cat(".site.", kind, ".1.", generation_number(0).hex())));
    tree("site", "new");
    of_site.issue(2);
    const auto sealed = guard::seal_directory(dir.file("site"), seal_with(of("site", 2)), &of_site);
    ASSERT_TRUE(done(sealed)) << told(sealed);
    EXPECT_EQ(kept_in(dir.path()), std::vector<std::string>{".site.fence.2"});
    EXPECT_EQ(inside().size(), 1U);
    EXPECT_EQ(verdict_of(write("a", 1)), core::Verdict::Stale);
    ASSERT_TRUE(done(write("a", 2)));
  }
}

TEST_F(PublishFences, OfATreeThatIsTakenAwayDoNotComeBesideHigherOnes) {
  issue(2);
  ASSERT_TRUE(done(write("a", 2)));
  fs::rename(dir.file("site"), dir.file(cat(".site.stage.1.", generation_number(0).hex())));
  tree("site", "new");
  issue(3);
  ASSERT_TRUE(done(seal("a", 3)));
  of_site.issue(2);
  ASSERT_TRUE(done(guard::seal_directory(dir.file("site"), seal_with(of("site", 2)), &of_site)));
  EXPECT_EQ(inside(), std::vector<std::string>{".a.fence.3"});
}

// It opened the old tree, and goes on after another one took its place.
TEST_F(PublishFences, AWriterOfTheOldTreeIsNotToldThatItWrote) {
  issue(2);
  fences.meanwhile = [&] { ASSERT_TRUE(done(publish())); };
  const auto answer = write("a", 2);
  EXPECT_TRUE(here("a") == "by 2" || !done(answer)) << told(answer);
  EXPECT_TRUE(done(write("a", 2)));
  EXPECT_EQ(here("a"), "by 2");
}

// The trees change places after it has staged, and the old one is still there.
TEST_F(PublishFences, AWriteThatLandsInATreeThatWasPutAwayIsToldSo) {
  issue(2);
  ASSERT_TRUE(done(write("a", 2)));
  guard::Pass pass = pass_with(2);
  pass.require_live = true;
  fences.meanwhile = [&] {
    fs::rename(dir.file("site"), dir.file("away"));
    fs::rename(dir.file("out"), dir.file("site"));
  };
  const auto answer =
      guard::write_file({.path = dir.file("site/a"), .body = "late"}, pass, &fences);
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::Unavailable);
  EXPECT_NE(answer.error().message.find("replaced as a whole"), std::string::npos)
      << answer.error().message;
  EXPECT_EQ(here("a"), "new");
}

TEST_F(PublishFences, ASealerOfTheOldTreeSealsTheNewOne) {
  issue(2);
  fences.meanwhile = [&] { ASSERT_TRUE(done(publish())); };
  ASSERT_TRUE(done(seal("sub/deep/b", 2)));
  EXPECT_EQ(inside(), std::vector<std::string>{"sub/deep/.b.fence.2"});
}

}  // namespace
}  // namespace stint::test
