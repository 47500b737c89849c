// Sixteen workers in two processes on real stores, frozen, killed and cut off at random: every item
// is completed exactly once, or stands aside with a reason; follow-ups exist exactly for the
// completions, and every refused verb is in the ledger. STINT_PLAYS: how many items (a slice in
// `make test`).
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <sstream>

#include "base/random.h"
#include "base/text.h"
#include "os/pause.h"
#include "tests/support/process.h"
#include "tests/support/servers.h"
#include "tests/support/slice.h"
#include "tests/support/tcp_proxy.h"

namespace stint::test {
namespace {

struct Line {
  std::string state;
  std::string epoch;
  std::string parent;
  int then = 0;  // so many follow-ups come with its completion
  std::string why;
};

class QueuePlay : public ::testing::Test {
 protected:
  Finished player(std::vector<std::string> words, Millis deadline = Millis(300'000)) {
    words.insert(words.begin(), QUEUE_PLAYER);
    return run({.argv = std::move(words)}, deadline);
  }
  std::string journal(int n) const { return dir_.file(cat("journal-", n)); }
  void start(int n) {
    children_[static_cast<std::size_t>(n)] = std::make_unique<Child>(
        Command{.argv = {QUEUE_PLAYER, "work", urls_[static_cast<std::size_t>(n)], journal(n),
                         cat(++seed_), cat(kWorkers)}});
  }
  int left() {
    const Finished done = player({"left", urls_[0]});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return std::atoi(done.out.c_str());
  }
  void fault(SeededRandom& random, TcpProxy* proxy);
  void play(int items, TcpProxy* proxy);
  void judge(int items);
  void judge_ledger(bool proxied);

  static constexpr int kWorkers = 8;  // of each process
  TempDir dir_;
  std::array<std::string, 2> urls_;
  std::array<std::unique_ptr<Child>, 2> children_;
  std::uint64_t seed_ = 0;
  std::map<std::string, int> faults_;
};

void QueuePlay::fault(SeededRandom& random, TcpProxy* proxy) {
  const int who = static_cast<int>(random.below(2));
  Child& child = *children_[static_cast<std::size_t>(who)];
  switch (random.below(proxy != nullptr ? 3 : 2)) {
    case 0:
      ++faults_["frozen"];
      child.signal(SIGSTOP);
      os::pause_for(Millis(1500));  // longer than the claims last: that is the fault
      child.signal(SIGCONT);
      return;
    case 1:
      ++faults_["killed"];
      child.signal(SIGKILL);
      child.wait(Millis(10'000));
      return start(who);
    default:
      ++faults_["cut off"];
      proxy->black_hole();
      os::pause_for(Millis(1500));
      proxy->forward();
      proxy->cut();
  }
}

void QueuePlay::play(int items, TcpProxy* proxy) {
  const Millis patience(300'000 + 100 * items);  // each is synced, on whatever disk this is
  ASSERT_EQ(player({"put", urls_[0], cat(items)}, patience).exit_code, 0);
  for (int n = 0; n < 2; ++n) start(n);
  SeededRandom random(20261115);
  // At least a few faults, and until nothing is left; each of the kinds comes.
  int rounds = 0;
  const MonoTime until = now() + Millis(120'000 + 200 * items);
  while (now() < until && (rounds < 4 || left() > 0)) {
    if (left() > 0) fault(random, proxy);
    os::pause_for(Millis(static_cast<std::int64_t>(random.below(700))));
    ++rounds;
  }
  for (int n = 0; n < 2; ++n) write_text(journal(n) + ".stop", "");
  for (const auto& child : children_) EXPECT_TRUE(child->wait(Millis(60'000)));
  judge(items);
  judge_ledger(proxy != nullptr);
}

// G8: every stale verb was refused, and is in the ledger. A line stands for all refusals of one
// item, owner and minute, and names the last of them: so of an item with several stale epochs one
// may be counted with another.
void QueuePlay::judge_ledger(bool proxied) {
  const Finished told = player({"stale", urls_[0]});
  if (told.exit_code == 3) return;  // so many events that the oldest are gone
  ASSERT_EQ(told.exit_code, 0) << told.err;
  std::map<std::string, std::map<std::string, int>> lines;  // by id and epoch
  for (const std::string_view line : split(trim(told.out), '\n')) {
    const auto words = split(line, ' ');
    if (words.size() == 3) lines[std::string(words[0])][std::string(words[1])] = words[2] != "1";
  }
  std::map<std::string, std::set<std::string>> stale;  // as the workers were told
  std::array<std::set<std::pair<std::string, std::string>>, 2> by_process;
  for (std::size_t n = 0; n < 2; ++n) {
    const std::string text = read_text(journal(static_cast<int>(n)));
    for (const std::string_view line : split(trim(text), '\n')) {
      const auto words = split(line, ' ');
      if (words.size() < 3 || words[0] != "stale") continue;
      stale[std::string(words[1])].insert(std::string(words[2]));
      by_process[n].emplace(words[1], words[2]);
    }
  }
  int checked = 0;
  int missing = 0;
  for (std::size_t n = 0; n < 2; ++n) {
    for (const auto& [id, epoch] : by_process[n]) {
      const auto found = lines.find(id);
      const bool there = found != lines.end();
      const bool exact = there && found->second.contains(epoch);
      const bool counted =
          there && (stale[id].size() > 1 || std::ranges::any_of(found->second, [](const auto& one) {
                      return one.second > 0;
                    }));
      ++checked;
      if (exact || counted) continue;
      // Cut off right after the answer, it could not write the line.
      if (proxied && n == 1) {
        ++missing;
      } else {
        ADD_FAILURE() << id << " with epoch " << epoch << " was refused, and is not in the ledger";
      }
    }
  }
  EXPECT_LE(missing, kWorkers * faults_["cut off"]);
  std::cout << checked << " refused claims looked up in the ledger\n";
}

void QueuePlay::judge(int items) {
  const Finished dumped = player({"dump", urls_[0]});
  ASSERT_EQ(dumped.exit_code, 0);
  std::map<std::string, Line> all;
  for (const std::string_view line : split(trim(dumped.out), '\n')) {
    std::istringstream in{std::string(line)};
    std::string id;
    Line one;
    in >> id >> one.state >> one.epoch >> one.parent >> one.then;
    std::getline(in, one.why);
    all[id] = one;
  }
  int roots = 0;
  std::map<std::string, int> children;
  std::map<std::string, int> states;
  for (const auto& [id, one] : all) {
    ++states[one.state];
    if (one.parent == "-") {
      ++roots;
    } else {
      ++children[one.parent];
      // G10: no follow-up without its parent's completion.
      EXPECT_EQ(all[one.parent].state, "done") << id;
    }
    EXPECT_TRUE(one.state == "done" || one.state == "parked" || one.state == "failed")
        << id << " is " << one.state;
    EXPECT_TRUE(one.state == "done" || trim(one.why) != "-") << id << " has no reason";
  }
  EXPECT_EQ(roots, items);
  // G10: with the completion or not at all, and exactly those.
  for (const auto& [id, one] : all) {
    EXPECT_EQ(children[id], one.state == "done" ? one.then : 0) << id << " is " << one.state;
  }
  std::set<std::string> completed;
  int stale = 0;
  for (int n = 0; n < 2; ++n) {
    const std::string text = read_text(journal(n));
    for (const std::string_view line : split(trim(text), '\n')) {
      const auto words = split(line, ' ');
      if (words.size() < 3) continue;
      stale += words[0] == "stale" ? 1 : 0;
      if (words[0] != "done") continue;
      const std::string id(words[1]);
      // G10: at most once; G8: and only by the epoch that the item stands at.
      EXPECT_TRUE(completed.insert(id).second) << id << " was completed twice";
      EXPECT_EQ(all[id].state, "done") << id;
      EXPECT_EQ(all[id].epoch, words[2]) << id;
    }
  }
  std::cout << items << " items: " << states["done"] << " done (" << completed.size() << " told), "
            << states["parked"] << " parked, " << states["failed"] << " failed, " << stale
            << " stale verbs refused; " << all.size() - static_cast<std::size_t>(roots)
            << " follow-ups"
            << "; faults:";
  for (const auto& [what, count] : faults_) std::cout << " " << count << " " << what;
  std::cout << "\n";
}

// EVIDENCE-OF: G8 G10
TEST_F(QueuePlay, OnSqlite) {
  urls_.fill(cat("sqlite:", dir_.file("play.db"), "?timeout=60s"));
  play(plays(200), nullptr);
}

// Plain files: the second implementation.
TEST_F(QueuePlay, OnADirectory) {
  urls_.fill(cat("dir:", dir_.file("mount")));
  play(plays(60), nullptr);
}

TEST_F(QueuePlay, OnRedis) {
  if (const std::string why = RedisServer::missing(); !why.empty()) GTEST_SKIP() << why;
  RedisServer server;
  ASSERT_TRUE(server.start());
  TcpProxy proxy(server.port());
  urls_ = {server.url(), cat("redis://127.0.0.1:", proxy.port())};
  play(plays(150), &proxy);
}

TEST_F(QueuePlay, OnPostgres) {
  if (const std::string why = PostgresServer::missing(); !why.empty()) GTEST_SKIP() << why;
  PostgresServer server;
  ASSERT_TRUE(server.start());
  TcpProxy proxy(server.port());
  std::string through = server.url();
  const std::string port = cat(":", server.port());
  const std::size_t at = through.find(port);
  ASSERT_NE(at, std::string::npos) << through;
  through.replace(at, port.size(), cat(":", proxy.port()));
  urls_ = {server.url(), through};
  play(plays(150), &proxy);
}

}  // namespace
}  // namespace stint::test
