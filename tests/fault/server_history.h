// Many clients on one store, in processes of their own, everything recorded; faults strike beside
// them, and the history is judged. The clients are the same for every store.
//
//   Traffic traffic({.ttl = Millis(400)}, [&](int process) { return ground.open(process); });
//   ASSERT_TRUE(traffic.begin());
//   traffic.crash();
//   server.restart();
//   EXPECT_TRUE(traffic.goes_on());
//   const Verdict verdict = traffic.stop();
//   EXPECT_TRUE(verdict.clean()) << verdict.text();
//
// Each client acquires, renews, checks, releases, transfers, revokes, re-takes and walks away, on a
// handful of resources, through the production service. What it is told to be unknown it settles as
// the law says: it asks again with the same claim.
//
// Each object belongs to one thread.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "store/module.h"
#include "tests/support/history_checker.h"
#include "tests/support/process.h"

namespace stint::test {

struct TrafficPlan {
  int processes = 8;
  int threads = 8;  // in each
  int resources = 12;
  Millis ttl{400};
};

// Called in the client's process, before it has threads.
using OpenStore = std::function<store::OpenedStore(int process)>;

struct Verdict {
  HistoryReport report;
  // What a client was told and cannot be: see server_history.cc.
  std::vector<std::string> complaints;
  int grants = 0;
  std::size_t unreachable = 0;  // of the unknown ones in the report: the store was not asked at all
  int settled = 0;              // acquires that were unknown and became known by asking again
  int faults = 0;

  bool clean() const { return report.violations.empty() && complaints.empty(); }
  std::string line() const;  // the numbers
  std::string text() const;  // and each violation and complaint
};

// What all processes see; in memory that they share.
struct Board {
  std::atomic<bool> stop = false;
  std::atomic<int> open = 0;  // processes that have opened the store
  std::atomic<int> grants = 0;
  std::atomic<int> settled = 0;
  // How late its timers may fire, as the store says; below zero: as late as they like.
  std::atomic<std::int64_t> step_ms = 0;
};

class Traffic {
 public:
  Traffic(const TrafficPlan& plan, OpenStore open);
  ~Traffic();  // kills what is left
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  const TrafficPlan& plan() const { return plan_; }
  // Returns when all of them work.
  Status begin();
  // Is there any progress? Waits for this many more grants.
  bool goes_on(int more = 20, Millis deadline = Millis(30'000)) const;
  const std::vector<pid_t>& processes() const { return processes_; }

  void fault() { ++faults_; }
  // Of the store: it may forget what it had not made durable. Also a fault. To be called before it.
  void crash();
  // To be called when it is dead: what it acknowledged between the two may be forgotten as well.
  void crashed();

  // REQUIRES: all faults are healed: what is unknown is settled now.
  Verdict stop();

 private:
  Status await_end();
  void write_crash(const std::string& op);
  CheckOptions options() const;

  const TrafficPlan plan_;
  const OpenStore open_;
  const TempDir folder_;
  Board* const board_;
  std::vector<pid_t> processes_;
  int faults_ = 0;
};

// Tokens that nobody was told of and that no unknown operation explains: something that was said
// not to have happened did. Empty: none.
std::vector<std::string> unexplained_tokens(const std::vector<HistoryEvent>& history, Millis ttl);

}  // namespace stint::test
