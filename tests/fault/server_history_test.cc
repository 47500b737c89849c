// Every store under 64 clients while its servers are killed, stopped, cut off and robbed of their
// answers: one table of grounds and fault scripts, and the history decides.
//
// A slice of some seconds for each row; STINT_HISTORY_SECONDS for longer ones (tools/soak.sh).
#include "tests/fault/server_history.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <cstdlib>
#include <iostream>

#include "base/text.h"
#include "os/pause.h"
#include "os/random.h"
#include "tests/fault/history_grounds.h"
#include "tests/support/lying_stores.h"
#include "tests/support/slice.h"

namespace stint::test {
namespace {

Millis slice() { return std::chrono::seconds(asked("STINT_HISTORY_SECONDS", 2)); }

std::uint64_t below(std::uint64_t bound) {
  static os::SystemRandom random;
  return random.below(bound);
}

// ---- The faults. Each strikes once, and has healed when it returns.

using Strike = void (*)(Ground&, Traffic&);

Server& some_server(Ground& ground) {
  const auto servers = ground.servers();
  return *servers[below(servers.size())];
}

// So long that a lease runs out and a client's patience as well.
Millis past_a_ttl(const Ground& ground) {
  return std::max(ground.ttl(), Ground::kTimeout) + Millis(300);
}

void kill_one(Ground& ground, Traffic& traffic) {
  Server& server = some_server(ground);
  traffic.crash();
  server.kill9();
  traffic.crashed();
  os::pause_for(Millis(below(400)));
  const auto back = server.start();
  ASSERT_TRUE(back) << back.error().message;
}

void freeze_one(Ground& ground, Traffic& traffic) {
  Server& server = some_server(ground);
  traffic.fault();
  server.freeze();
  os::pause_for(past_a_ttl(ground));
  server.thaw();
}

// The commit is carried out and nobody learns of it; or its request never arrives: a client cannot
// tell these apart.
void drop_replies(Ground& ground, Traffic& traffic) {
  traffic.fault();
  const int after = static_cast<int>(below(100));
  const std::uint64_t how = below(4);
  for (const auto& proxy : ground.proxies()) {
    if (how == 0) proxy->drop_replies_after(after, TcpProxy::Dropped::Silently);
    if (how == 1) proxy->cut_at_request_after(after);
    if (how >= 2) proxy->drop_replies_after(after, TcpProxy::Dropped::Cut);
  }
  os::pause_for(Millis(100 + below(300)));
  for (const auto& proxy : ground.proxies()) {
    proxy->forward();
    proxy->cut();
  }
}

// From everything, or from its peers only: then it still answers clients, and must not from what it
// remembers.
void cut_off(Ground& ground, Traffic& traffic) {
  traffic.fault();
  NetworkNamespace& apart = *ground.apart();
  const auto cut = below(2) == 0 ? apart.cut() : apart.cut_ports(ground.peer_ports());
  ASSERT_TRUE(cut) << cut.error().message;
  os::pause_for(past_a_ttl(ground));
  const auto healed = apart.heal();
  ASSERT_TRUE(healed) << healed.error().message;
}

void freeze_writers(Ground& ground, Traffic& traffic) {
  for (std::uint64_t i = below(3); i < 3; ++i) {
    traffic.fault();
    ::kill(traffic.processes()[below(traffic.processes().size())], SIGSTOP);
  }
  os::pause_for(Millis(below(static_cast<std::uint64_t>(ground.ttl().count()) * 3 / 2)));
  for (const pid_t pid : traffic.processes()) ::kill(pid, SIGCONT);
}

// ---- The table

struct Row {
  std::string name;
  GroundKind ground;
  Strike strike;
};
void PrintTo(const Row& row, std::ostream* out) { *out << row.name; }

std::vector<Row> rows() {
  return {{"PostgresKilled", postgres_ground(Via::Straight), kill_one},
          {"PostgresStopped", postgres_ground(Via::Straight), freeze_one},
          {"PostgresRepliesDropped", postgres_ground(Via::Proxy), drop_replies},
          {"RedisKilled", redis_ground(Via::Straight), kill_one},
          {"RedisStopped", redis_ground(Via::Straight), freeze_one},
          {"RedisRepliesDropped", redis_ground(Via::Proxy), drop_replies},
          {"DoKilled", do_ground(Via::Straight), kill_one},
          {"DoStopped", do_ground(Via::Straight), freeze_one},
          {"DoRepliesDropped", do_ground(Via::Proxy), drop_replies},
          {"EtcdOneOfThreeKilled", etcd_ground(Via::Straight), kill_one},
          {"EtcdOneOfThreeStopped", etcd_ground(Via::Straight), freeze_one},
          {"EtcdRepliesDropped", etcd_ground(Via::Proxy), drop_replies},
          {"EtcdOneOfThreeCutOff", etcd_ground_in_namespace(), cut_off},
          {"DirInTwoNamespacesWritersStopped", dir_ground(), freeze_writers}};
}

class ServerHistory : public ::testing::TestWithParam<Row> {};
INSTANTIATE_TEST_SUITE_P(Faults, ServerHistory, ::testing::ValuesIn(rows()),
                         [](const auto& row) { return row.param.name; });

// EVIDENCE-OF: G1 G2 G3 G11
TEST_P(ServerHistory, Of64ClientsIsClean) {
  if (const std::string why = GetParam().ground.missing(); !why.empty()) GTEST_SKIP() << why;
  const auto ground = GetParam().ground.make();
  const auto started = ground->start();
  ASSERT_TRUE(started) << started.error().message;
  Traffic traffic({.ttl = ground->ttl()}, [&](int process) { return ground->open(process); });
  const auto begun = traffic.begin();
  ASSERT_TRUE(begun) << begun.error().message;
  const MonoTime end = now() + slice();
  do {
    ASSERT_NO_FATAL_FAILURE(GetParam().strike(*ground, traffic));
    EXPECT_TRUE(traffic.goes_on()) << "nothing is granted after the fault has healed";
  } while (now() < end && !HasFailure());
  const Verdict verdict = traffic.stop();
  std::cout << GetParam().name << ": " << verdict.line() << '\n';
  EXPECT_TRUE(verdict.clean()) << verdict.text();
}

// ---- Does it see a broken store?

class SabotagedHistory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = RedisServer::missing(); !why.empty()) GTEST_SKIP() << why;
  }
  // Clients on a Redis that each process sees through the lie.
  template <class Lie>
  static Verdict watch(int times) {
    const auto ground = redis_ground(Via::Straight).make();
    EXPECT_TRUE(ground->start());
    Traffic traffic({.ttl = ground->ttl()}, [&](int process) -> store::OpenedStore {
      auto store = ground->open(process);
      if (!store) return store.error();
      return std::unique_ptr<store::Store>(
          std::make_unique<Lie>(std::shared_ptr<store::Store>(std::move(*store))));
    });
    EXPECT_TRUE(traffic.begin());
    for (int i = 0; i < times; ++i) EXPECT_TRUE(traffic.goes_on());
    return traffic.stop();
  }
};

TEST_F(SabotagedHistory, ShowsAStoreInWhichTheLastWriterWins) {
  const Verdict verdict = watch<LastWriterWins>(5);
  std::cout << "last writer wins: " << verdict.line() << '\n';
  EXPECT_GT(verdict.report.violations.size(), 0U);
}

// Now and then says of a commit that it was not sent, and it was: what happens where an answer that
// did not come is taken for a request that did not go.
class Hasty final : public SharedStore {
 public:
  using SharedStore::SharedStore;
  Result<store::CommitAnswer> commit(const std::vector<store::Step>& steps,
                                     store::Sync sync) override {
    auto answer = SharedStore::commit(steps, sync);
    if (answer && below(10) == 0) return unavailable("it was not sent");
    return answer;
  }
};

TEST_F(SabotagedHistory, ShowsAStoreThatCallsNotDoneWhatItDid) {
  const Verdict verdict = watch<Hasty>(5);
  std::cout << "done and called not done: " << verdict.line() << '\n';
  EXPECT_GT(verdict.complaints.size(), 0U) << verdict.text();
}

}  // namespace
}  // namespace stint::test
