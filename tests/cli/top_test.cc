// `stint top` in a real terminal: tmux gives it one, of two sizes, with and without colours.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "tests/cli/stint.h"

namespace stint::test {
namespace {

class TerminalPane {
 public:
  TerminalPane(const Stint& stint, int columns, int rows, const std::string& words)
      : socket_(folder_.file("tmux")) {
    Command command = stint.command({});
    std::string line = command.argv.front();
    for (std::size_t i = 1; i < command.argv.size(); ++i) line += cat(" '", command.argv[i], "'");
    command.argv = {
        "tmux", "-f",      "/dev/null",
        "-S",   socket_,   "new-session",
        "-d",   "-x",      cat(columns),
        "-y",   cat(rows), cat("env -u NO_COLOR ", line, " ", words, "; echo ended=$?; cat")};
    EXPECT_EQ(run(command).exit_code, 0);
  }
  ~TerminalPane() { tmux({"kill-server"}); }
  TerminalPane(const TerminalPane&) = delete;
  TerminalPane& operator=(const TerminalPane&) = delete;

  void press(const std::string& key) { tmux({"send-keys", key}); }
  void resize(int columns, int rows) {
    tmux({"resize-window", "-x", cat(columns), "-y", cat(rows)});
  }
  std::string text() { return tmux({"capture-pane", "-p"}); }
  std::string painted() { return tmux({"capture-pane", "-p", "-e"}); }
  bool shows(const std::string& piece) {
    return wait_until([&] { return text().find(piece) != std::string::npos; }, Millis(30'000));
  }

 private:
  std::string tmux(std::vector<std::string> words) {
    words.insert(words.begin(), {"tmux", "-S", socket_});
    return run({.argv = words}).out;
  }
  TempDir folder_;
  std::string socket_;
};

std::ptrdiff_t rows_of(const std::string& text) { return std::ranges::count(text, '\n'); }

TEST(Top, FillsATerminalOfTwoSizes) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "site/a/publish", "--ttl", "10m"}).exit_code, 0);
  ASSERT_EQ(stint({"acquire", "blog-repo", "--ttl", "10m"}).exit_code, 0);
  TerminalPane pane(stint, 80, 24, "top");
  ASSERT_TRUE(pane.shows("2 held of 2")) << pane.text();
  const std::string small = pane.text();
  EXPECT_NE(small.find("blog-repo"), std::string::npos) << small;
  EXPECT_NE(small.find("q quit"), std::string::npos) << small;
  EXPECT_EQ(rows_of(small), 24);
  pane.resize(200, 60);
  ASSERT_TRUE(wait_until(
      [&] { return rows_of(pane.text()) == 60 && pane.text().find("q quit") != std::string::npos; },
      Millis(30'000)))
      << pane.text();
  EXPECT_NE(pane.text().find("site/a/publish"), std::string::npos);

  // What happens meanwhile is seen.
  ASSERT_EQ(stint({"acquire", "newcomer", "--ttl", "10m"}).exit_code, 0);
  EXPECT_TRUE(pane.shows("newcomer")) << pane.text();
  pane.press("/");
  pane.press("site");
  EXPECT_TRUE(pane.shows("/site_"));
  EXPECT_TRUE(wait_until([&] { return pane.text().find("\n blog-repo") == std::string::npos; }));
  pane.press("Escape");
  pane.press("Enter");
  EXPECT_TRUE(pane.shows("HISTORY of")) << pane.text();
  pane.press("Tab");
  EXPECT_TRUE(pane.shows(" LATEST")) << pane.text();
  ASSERT_EQ(stint({"run", "newcomer", "--", "true"}).exit_code, 0);
  pane.press("Tab");
  EXPECT_TRUE(pane.shows(" REFUSED")) << pane.text();
  EXPECT_TRUE(pane.shows("skipped_held")) << pane.text();
  pane.press("Tab");
  EXPECT_TRUE(pane.shows(" JOBS")) << pane.text();
  pane.press("Tab");
  EXPECT_TRUE(pane.shows("no queue yet")) << pane.text();
  ASSERT_EQ(stint({"queue", "put", "mail", "hello", "--create"}).exit_code, 0);
  EXPECT_TRUE(pane.shows("mail  waiting 1")) << pane.text();
  pane.press("q");
  EXPECT_TRUE(pane.shows("ended=0")) << pane.text();
}

TEST(Top, HasColoursOnlyWhereTheyAreWanted) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "blog-repo", "--ttl", "10m"}).exit_code, 0);
  {
    TerminalPane pane(stint, 80, 24, "top");
    ASSERT_TRUE(pane.shows("1 held of 1")) << pane.text();
    EXPECT_NE(pane.painted().find("\033[1m"), std::string::npos) << pane.painted();
  }
  TerminalPane pane(stint, 80, 24, "top --no-color");
  ASSERT_TRUE(pane.shows("1 held of 1")) << pane.text();
  EXPECT_EQ(pane.painted().find("\033[1m"), std::string::npos) << pane.painted();
  EXPECT_EQ(pane.painted().find("\033[2m"), std::string::npos) << pane.painted();
}

TEST(Top, IsPlainTextWhereThereIsNoTerminal) {
  const Stint stint;
  ASSERT_EQ(stint({"acquire", "blog-repo", "--ttl", "10m"}).exit_code, 0);
  const Finished done = stint({"top"});
  EXPECT_EQ(done.exit_code, 0) << done.err;
  EXPECT_NE(done.out.find("blog-repo"), std::string::npos) << done.out;
  EXPECT_EQ(done.out.find('\033'), std::string::npos);
  const Finished json = stint({"top", "--json"});
  EXPECT_EQ(json.exit_code, 0);
  EXPECT_EQ(json.out.front(), '[');
}

TEST(Pictures, AreWritten) {
  const Stint stint;
  ASSERT_EQ(stint({"run", "blog-repo", "--", "true"}).exit_code, 0);
  const std::string file = stint.dir().file("history.svg");
  EXPECT_EQ(stint({"history", "blog-repo", "--svg", file}).exit_code, 0);
  EXPECT_NE(read_text(file).find("blog-repo"), std::string::npos);
  EXPECT_EQ(stint({"history", "blog-repo", "--svg", "/nowhere/x.svg"}).exit_code, 69);
}

}  // namespace
}  // namespace stint::test
