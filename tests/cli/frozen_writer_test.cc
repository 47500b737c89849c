// The frozen writer of LAW's fourteen steps, against every verb that starts work: the first holder
// reads and is frozen; its lease runs out; the second is granted the lease, and reads; the first
// wakes and writes; the second writes over it. Each cell asks that the late write is refused (13,
// in SQL ST001), that what the second read still stands when it writes, and that it may write.
//
// A slice by default; STINT_FULL_SWEEP=1 plays all cells (docs/proof.md).
#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "base/text.h"
#include "tests/cli/stint.h"
#include "tests/support/servers.h"

namespace stint::test {
namespace {

namespace fs = std::filesystem;

enum class Verb { Run, Cron, Once, Admit, Work };
enum class Shape { One, Two, Or };
enum class On { File, Directory, Git, Table };
enum class How { Configured, Given, Remembered };

constexpr const char* kVerbs[] = {"run", "cron", "once", "admit", "work --with"};
constexpr const char* kShapes[] = {"one", "two", "--or"};
constexpr const char* kTargets[] = {"file", "directory", "git", "table"};
constexpr const char* kHows[] = {"[seal]", "--seal", "remembered"};

struct Cell {
  Verb verb;
  Shape shape;
  On on;
  How how;
  std::string name() const {
    return cat(kVerbs[static_cast<int>(verb)], ", ", kShapes[static_cast<int>(shape)], ", ",
               kTargets[static_cast<int>(on)], ", ", kHows[static_cast<int>(how)]);
  }
};

// One cell's world: a store, a target, scripts that read and write it.
class World {
 public:
  World(const Cell& cell, PostgresServer* server) : cell_(cell), server_(server) {
    fs::create_directories(file("config/stint"));
    switch (cell.on) {
      case On::File: make_file(); break;
      case On::Directory: make_directory(); break;
      case On::Git: make_git(); break;
      case On::Table: make_table(); break;
    }
    write_text(file("config/stint/config.toml"),
               cell.how == How::Configured
                   ? cat("[seal]\n\"", resource(), "\" = [\"", target_, "\"]\n")
                   : "");
    write_text(file("write"), cat("#!/bin/sh\n", write_));
    write_text(file("read"), cat("#!/bin/sh\n", read_));
    write_text(file("late"),
               cat("#!/bin/sh\necho $$ >", file("pid.new"), " && mv ", file("pid.new"), " ",
                   file("pid"), "\nkill -STOP $$\n", file("write"), " one $1\necho $? >",
                   file("late.new"), "\nmv ", file("late.new"), " ", file("late.done"), "\n"));
    write_text(file("work"),
               cat("#!/bin/sh\n", file("read"), " >", file("first"), "\nkill -CONT $(cat ",
                   file("pid"), ")\nn=0\nwhile [ ! -e ", file("late.done"),
                   " ] && [ $n -lt 600 ]; do sleep 0.05; n=$((n+1)); done\n", file("read"), " >",
                   file("second"), "\n", file("write"), " two ", token(), "\necho $? >",
                   file("two.done"), "\nexit 0\n"));
    for (const char* script : {"write", "read", "late", "work"}) {
      fs::permissions(file(script), fs::perms::owner_all);
    }
  }

  // The late write landed.
  bool stale() const { return read_text(file("late.done")) == "0\n"; }

  void play() {
    if (cell_.how == How::Remembered) {
      ASSERT_EQ(stint({"run", resource(), "--seal", target_, "--", "true"}).exit_code, 0);
    }
    if (cell_.shape == Shape::Or) {
      ASSERT_EQ(stint({"acquire", "q", "--ttl", "1h"}).exit_code, 0);
    }
    const std::string first = trim_token(stint({"acquire", resource(), "--ttl", "2s"}).out);
    // It has sealed the target itself: its fence stands, and so its own late write asks no store.
    const auto seal = [&](std::vector<std::string> more) {
      std::vector<std::string> words = {"seal", target_, "--resource", resource()};
      words.insert(words.end(), more.begin(), more.end());
      return stint(words).exit_code;
    };
    ASSERT_EQ(seal({"--token", first}), 0);
    if (cell_.how != How::Remembered) {
      ASSERT_EQ(seal({"--forget", "--why", "only what this cell is about is to seal it"}), 0);
    }
    Command late = command({});
    late.argv = {file("late"), first};
    late.cwd = file("");
    Child writer(late);
    ASSERT_TRUE(wait_until([&] { return fs::exists(file("pid")); }));
    ASSERT_TRUE(wait_until([&] { return stopped(writer.pid()); }));
    ASSERT_TRUE(wait_until([&] { return !stint_.held(resource()); }));
    const Finished second = start();
    EXPECT_EQ(second.exit_code, 0) << second.err;
    ASSERT_TRUE(fs::exists(file("late.done"))) << second.out << second.err;
    EXPECT_EQ(read_text(file("late.done")), "13\n") << "the late write: " << second.err;
    EXPECT_EQ(read_text(file("first")), read_text(file("second"))) << "an update was lost";
    EXPECT_EQ(read_text(file("two.done")), "0\n") << second.err;
    EXPECT_TRUE(writer.wait(Millis(20'000)));
  }

 private:
  std::string file(const std::string& name) const { return stint_.dir().file(name); }
  std::string resource() const { return cell_.verb == Verb::Once ? "once/k" : "r"; }
  // The second holder's.
  std::string token() const { return cell_.how == How::Remembered ? "3" : "2"; }
  static std::string trim_token(const std::string& out) { return std::string(trim(out)); }

  Command command(std::vector<std::string> words) const {
    Command out = stint_.command(std::move(words));
    out.env.emplace_back("XDG_CONFIG_HOME", file("config"));
    return out;
  }
  Finished stint(std::vector<std::string> words) const {
    return run(command(std::move(words)), Millis(60'000));
  }
  static bool stopped(pid_t pid) {
    const std::string stat = read_text(cat("/proc/", pid, "/stat"));
    const std::size_t end = stat.rfind(") ");
    return end != stat.npos && stat[end + 2] == 'T';
  }

  void give(std::vector<std::string>& words, bool says_whose) const {
    if (cell_.how != How::Given) return;
    words.insert(words.end(), {"--seal", says_whose ? cat(resource(), "=", target_) : target_});
  }

  // Two that are held at once: the verb knows of it, or runs inside of a run of the other.
  Finished start() {
    std::vector<std::string> words;
    const bool two = cell_.shape == Shape::Two;
    if (two && cell_.verb != Verb::Run) words = {"run", "q", "--", stint_.binary()};
    const auto add = [&](std::vector<std::string> more) {
      words.insert(words.end(), more.begin(), more.end());
    };
    switch (cell_.verb) {
      case Verb::Run:
        add({"run"});
        if (cell_.shape != Shape::One) add({"q"});
        cell_.shape == Shape::Or ? add({"--or", "r"}) : add({"r"});
        give(words, two);
        add({"--", file("work")});
        break;
      case Verb::Cron:
        write_text(
            file("stint.toml"),
            cat("[job.j]\nschedule = '0 6 * * *'\ncommand = '", file("work"), "'\n",
                cell_.shape == Shape::Or ? "resource = 'q'\nor = ['r']\n" : "resource = 'r'\n",
                cell_.how == How::Given ? cat("seal = ['", target_, "']\n") : ""));
        add({"cron", "run", "j", "--slot", "2026-11-10T06:00:00Z", "--file", file("stint.toml")});
        break;
      case Verb::Once:
        add({"once", "k"});
        give(words, false);
        add({"--", file("work")});
        break;
      case Verb::Admit:
        EXPECT_EQ(trim_token(stint({"acquire", "r", "--ttl", "1h"}).out), token());
        add({"admit", "deploy", "--resource", "r", "--token", token()});
        give(words, false);
        add({"--", file("work")});
        break;
      case Verb::Work:
        EXPECT_EQ(stint({"queue", "put", "items", "x", "--create"}).exit_code, 0);
        add({"work", "items", "--with", "r", "--until-empty"});
        give(words, false);
        add({"--", file("work")});
        break;
    }
    Command out = command(words);
    out.cwd = file("");
    return run(out, Millis(120'000));
  }

  // ---- targets: `write WHO TOKEN` exits 13 where it is refused.

  std::string guarded(const std::string& verb) const {
    return cat(stint_.binary(), " ", verb, " --resource ", resource(), " --token $2");
  }
  void make_file() {
    target_ = cat("file:", file("page"));
    write_text(file("page"), "zero");
    read_ = cat("cat ", file("page"), "\n");
    write_ = cat("echo $1 | ", guarded(cat("write ", file("page"))), "\n");
  }
  void make_directory() {
    target_ = cat("dir:", file("site"));
    fs::create_directories(file("site"));
    write_text(file("site/page"), "zero");
    for (const char* who : {"one", "two"}) {
      fs::create_directories(file(cat("new-", who)));
      write_text(file(cat("new-", who, "/page")), who);
    }
    read_ = cat("cat ", file("site/page"), "\n");
    write_ = cat(guarded(cat("publish ", file("site"), " --from ", file("new-"), "$1")), "\n");
  }
  void make_git() {
    target_ = cat("git:", file("s.git"), "#main");
    const std::string who = "git -c user.name=t -c user.email=t@t commit -q --allow-empty -m ";
    const Finished made =
        run({.argv = {"sh", "-ec",
                      cat("cd ", file(""),
                          "; git init -q --bare s.git; git init -q -b main seed; cd seed; ", who,
                          "zero; git push -q ../s.git main; cd ..; for w in one two; do git clone "
                          "-q s.git -b main $w; ",
                          "(cd $w; ", who, "$w); done")}});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    read_ = cat("git --git-dir ", file("s.git"), " rev-parse main\n");
    write_ = cat("cd ", file("$1"), " && ", guarded("push origin main"), "\n");
  }
  void make_table() {
    const std::string url = server_->url();
    const auto sql = [&](const std::string& text) {
      return cat(PostgresServer::program("psql"), " -XAtq -v ON_ERROR_STOP=1 -d '", database_url(),
                 "' -c \"", text, "\"");
    };
    static int number = 0;
    database_ = cat("frozen_", ++number);
    ASSERT_EQ(run({.argv = {PostgresServer::program("psql"), "-XAtq", "-d", url, "-c",
                            cat("CREATE DATABASE ", database_)}})
                  .exit_code,
              0);
    target_ =
        cat("postgres://postgres@127.0.0.1:", server_->port(), "/", database_, "#", resource());
    const std::string place = target_.substr(0, target_.find('#'));
    const Finished table =
        run({.argv = {"sh", "-c",
                      sql("CREATE TABLE posts (text text); INSERT INTO posts VALUES ('zero')")}});
    ASSERT_EQ(table.exit_code, 0) << table.err;
    const Finished installed = stint({"guard", "install", place});
    ASSERT_EQ(installed.exit_code, 0) << installed.err;
    const Finished guarded = stint({"guard", "protect", place, "posts", "--resource", resource()});
    ASSERT_EQ(guarded.exit_code, 0) << guarded.err;
    read_ = sql("SELECT text FROM posts") + "\n";
    write_ = cat("out=$(",
                 sql("BEGIN; SET LOCAL stint.token = '$2'; UPDATE posts SET text = '$1'; COMMIT"),
                 " 2>&1)\ncode=$?\n[ $code = 0 ] && exit 0\necho \"$out\" >&2\n",
                 "case $out in *stale*|*'newer'*|*refused*) exit 13;; esac\nexit $code\n");
  }
  std::string database_url() const {
    return cat("host=127.0.0.1 port=", server_->port(), " user=postgres dbname=", database_);
  }

  const Cell cell_;
  PostgresServer* const server_;
  const Stint stint_;
  std::string target_;
  std::string read_;
  std::string write_;
  std::string database_;
};

bool is_played(const Cell& cell) {
  if (cell.shape == Shape::Or && cell.verb != Verb::Run && cell.verb != Verb::Cron) {
    return false;  // those have no --or
  }
  return true;
}

// EVIDENCE-OF: G5
TEST(FrozenWriter, IsRefusedByWhateverVerbComesNext) {
  PostgresServer server;
  const bool tables = PostgresServer::missing().empty() && server.start();
  if (!tables) std::cout << "tables are skipped: " << PostgresServer::missing() << "\n";
  const bool full = ::getenv("STINT_FULL_SWEEP") != nullptr;
  int cells = 0;
  int stale = 0;
  int number = 0;
  for (const Verb verb : {Verb::Run, Verb::Cron, Verb::Once, Verb::Admit, Verb::Work}) {
    for (const Shape shape : {Shape::One, Shape::Two, Shape::Or}) {
      for (const On on : {On::File, On::Directory, On::Git, On::Table}) {
        for (const How how : {How::Configured, How::Given, How::Remembered}) {
          const Cell cell{verb, shape, on, how};
          if (!is_played(cell) || (on == On::Table && !tables)) continue;
          constexpr int kEvery = 7;
          if (!full && number++ % kEvery != 0) continue;
          SCOPED_TRACE(cell.name());
          World world(cell, &server);
          world.play();
          ++cells;
          if (!world.stale()) continue;
          ++stale;
          std::cout << "stale: " << cell.name() << "\n";
        }
      }
    }
  }
  std::cout << cells << " cells, " << stale << " stale writes\n";
}

}  // namespace
}  // namespace stint::test
