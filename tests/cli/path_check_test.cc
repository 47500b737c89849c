// `stint guard check` of a file, on a real disk and with a real git.
#include "guard/path_check.h"

#include <gtest/gtest.h>

#include "base/text.h"
#include "guard/fence_file.h"
#include "tests/support/process.h"

namespace stint::test {
namespace {

using guard::check_path;
using guard::CheckLine;
using guard::parse_target;

using Level = CheckLine::Level;

class PathCheck : public ::testing::Test {
 protected:
  std::string said(Level level) {
    const auto lines =
        check_path(parse_target(cat("file:", dir_.file("a.json")), "/").value(), nullptr);
    EXPECT_TRUE(lines) << lines.error().message;
    std::string out;
    for (const CheckLine& line : *lines) {
      if (line.level == level) out += line.text + "\n";
    }
    return out;
  }
  void leave(const std::string& name) { write_text(dir_.file(name), ""); }
  std::string fence(std::uint64_t token) {
    guard::StandingFence out;
    out.fence.generation = Generation::parse(std::string(32, 'a')).value();
    out.fence.resource = "r";
    out.fence.token = Token(token);
    const std::string name = guard::fence_name("a.json", Token(token));
    write_text(dir_.file(name), guard::fence_text(out));
    return name;
  }
  void git(const std::string& word) {
    EXPECT_EQ(run({.argv = {"git", "-C", dir_.path(), word}}, Millis(10'000)).exit_code, 0);
  }
  TempDir dir_;
};

TEST_F(PathCheck, ShowsTheHighestFenceAndWhatWasLeft) {
  EXPECT_NE(said(Level::Ok).find("no fence"), std::string::npos);
  fence(9);
  fence(10);
  const std::string nonce(32, 'b');
  for (const std::string& name :
       {cat(".a.json.stage.9.", nonce), std::string(".b.json.fence.99"),
        std::string(".a.json.fence.mine"), cat(".a.json.seal.9.", nonce)}) {
    leave(name);
  }
  EXPECT_NE(said(Level::Ok).find("token 10"), std::string::npos) << said(Level::Ok);
  EXPECT_NE(said(Level::Ok).find("1 staged and 1 half-made"), std::string::npos);
  EXPECT_EQ(said(Level::Fail), "");
  leave(".a.json.fence.007");
  EXPECT_NE(said(Level::Fail).find(".a.json.fence.007"), std::string::npos) << said(Level::Fail);
}

// What the guard would refuse is not told as fine.
TEST_F(PathCheck, AFenceThatCannotBeUnderstoodFails) {
  fence(4);
  for (const std::string& text : {std::string(), std::string("garbage\n")}) {
    write_text(dir_.file(".a.json.fence.5"), text);
    EXPECT_NE(said(Level::Fail).find("'.a.json.fence.5' cannot be understood"), std::string::npos)
        << said(Level::Fail);
    EXPECT_EQ(said(Level::Ok).find("stands at"), std::string::npos) << said(Level::Ok);
  }
  fence(5);
  EXPECT_EQ(said(Level::Fail), "");
  EXPECT_NE(said(Level::Ok).find("token 5 of 'r'"), std::string::npos) << said(Level::Ok);
}

TEST_F(PathCheck, FencesOfTwoResourcesFail) {
  fence(4);
  std::string other = read_text(dir_.file(fence(5)));
  other.replace(other.find("resource r"), 10, "resource s");
  write_text(dir_.file(".a.json.fence.5"), other);
  EXPECT_NE(said(Level::Fail).find("side by side"), std::string::npos) << said(Level::Fail);
}

TEST_F(PathCheck, WarnsWhenGitWouldCarryTheFences) {
  EXPECT_EQ(said(Level::Warn).find("git"), std::string::npos);
  git("init");
  EXPECT_NE(said(Level::Warn).find(".gitignore"), std::string::npos) << said(Level::Warn);
  write_text(dir_.file(".gitignore"), ".*.fence.*\n");
  EXPECT_EQ(said(Level::Warn).find("git"), std::string::npos) << said(Level::Warn);
}

TEST_F(PathCheck, AMissingDirectoryIsAnError) {
  EXPECT_FALSE(check_path(parse_target("file:/no/such/place/a", "/").value(), nullptr));
}

}  // namespace
}  // namespace stint::test
