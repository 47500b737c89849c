#include "guard/targets.h"

#include <gtest/gtest.h>

namespace stint::guard {
namespace {

std::string words(std::string_view text) {
  const auto target = parse_target(text, "/here");
  return target ? target->words : target.error().message;
}
bool refused(std::string_view text) {
  const auto target = parse_target(text, "/here");
  return !target && target.error().code == Code::Invalid;
}

TEST(Targets, PathsAreMadeAbsolute) {
  EXPECT_EQ(words("file:a.json"), "file:/here/a.json");
  EXPECT_EQ(words("file:./x//a.json"), "file:/here/x/a.json");
  EXPECT_EQ(words("file:/srv/a b"), "file:/srv/a b");
  EXPECT_EQ(words("dir:site/"), "dir:/here/site");
  EXPECT_EQ(parse_target("dir:/srv/site", "/").value().kind, TargetKind::Directory);
  EXPECT_EQ(parse_target("dir:/srv/site", "/").value().place, "/srv/site");
}

TEST(Targets, WordsStayTheSameWhereverTheyAreReadAgain) {
  for (const std::string_view text :
       {"file:x", "dir:x/y", "git:origin/main", "git:https://h/r.git#main", "git:git@h:r.git#main",
        "postgres://u@h:5432/db?sslmode=require#blog", "postgresql://h/db#blog",
        "proxy:http://h:80/x", "admit:deploy/site"}) {
    const auto once = parse_target(text, "/here");
    ASSERT_TRUE(once) << once.error().message;
    const auto again = parse_target(once->words, "/elsewhere");
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->words, once->words);
    EXPECT_EQ(again->place, once->place);
    EXPECT_EQ(again->kind, once->kind);
  }
}

TEST(Targets, APasswordIsRefusedAndNotRepeated) {
  for (const std::string_view text :
       {"postgres://u:hunter2@h/db#r", "postgres://h/db?password=hunter2#r",
        "postgres://h/db?sslmode=off&password=hunter2#r", "git:https://u:hunter2@h/r.git#main",
        "proxy:http://u:hunter2@h/", "mysql://u:hunter2@h/db", "postgres://u:hun/hunter2@h/db#r",
        "git:https://u:x?hunter2@h/r.git#main"}) {
    const auto target = parse_target(text, "/here");
    ASSERT_FALSE(target) << text;
    EXPECT_EQ(target.error().message.find("hunter2"), std::string::npos) << target.error().message;
  }
}

TEST(Targets, HostileWordsAreRefused) {
  for (const std::string_view text :
       {"", "file:", "file", "/srv/x", "file:a/../b", "file:..", "file:/", "dir:/.", "file:a/",
        "file:a\nb", "file:\xFF", "git:origin", "git:", "postgres://h/db", "postgres://h/db#",
        "ftp://h/x", "admit:"}) {
    EXPECT_TRUE(refused(text)) << text;
  }
  EXPECT_TRUE(refused(std::string("file:/") + std::string(2000, 'x')));
  EXPECT_TRUE(refused(std::string_view("file:a\0b", 8)));
}

TEST(Targets, AKindWithoutAGuardIsUnsupportedBeforeAnythingIsDone) {
  Guards guards;
  guards[TargetKind::Admit] = store_guard();
  const auto target = find_target(guards, "proxy:http://h/", "/");
  ASSERT_FALSE(target);
  EXPECT_EQ(target.error().code, Code::Invalid);
  EXPECT_NE(target.error().message.find("unsupported"), std::string::npos);
  EXPECT_TRUE(find_target(guards, "admit:x", "/"));
}

TEST(Targets, AGuardMaySettleTheWords) {
  Guards guards;
  guards[TargetKind::Git] = {
      .settle_words = [](const Target&) -> Result<std::string> { return "git:https://h/r#main"; },
      .seal = [](const Target&, const SealRequest&, api::Fences*) -> Result<SealAnswer> {
        return SealAnswer(Sealed{});
      },
      .check = nullptr};
  EXPECT_EQ(find_target(guards, "git:origin/main", "/").value().words, "git:https://h/r#main");
}

}  // namespace
}  // namespace stint::guard
