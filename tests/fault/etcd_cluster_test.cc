// etcd:// on three members: one is killed, stopped or cut off while many clients work.
// EVIDENCE-OF: G1 G2 G3
#include <iostream>

#include "tests/fault/etcd_fixture.h"
#include "tests/support/history_checker.h"

namespace stint::test {
namespace {

constexpr Millis kTtl(3'000);

// Clients that acquire, renew and release until they are told to stop. Each has its own store.
class Traffic {
 public:
  Traffic(EtcdCluster& etcd, int clients) : history_(folder_.file("history.jsonl")) {
    for (int i = 0; i < clients; ++i) {
      auto ports = ports_of(etcd);
      std::rotate(ports.begin(), ports.begin() + i % static_cast<int>(ports.size()), ports.end());
      threads_.emplace_back([this, i, ports] { client(i, ports); });
    }
  }
  ~Traffic() { stop(); }

  void stop() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
    threads_.clear();
  }
  int grants() const { return grants_; }
  int unknowns() const { return unknowns_; }
  HistoryReport report() {
    auto history = load_history(folder_.file("history.jsonl"));
    EXPECT_TRUE(history);
    return check_history(*history, {.fires_late_by = std::nullopt});
  }

 private:
  void client(int number, const std::vector<std::uint16_t>& ports) {
    os::SystemRandom random;
    const auto store = open_etcd(ports);
    if (!store) return;
    service::Ledger ledger(*store, system_clock(), 1000);
    const auto begin = [&] {
      return service::begin_life(*store, random, system_clock().wall(), nullptr, {});
    };
    auto life = begin();
    while (!life && !stop_) life = begin();  // the first leader may be down already
    if (!life) return;
    service::LeaseService service(*store, ledger, *life, system_clock(), random, nullptr);
    RecordedLeases leases(service, history_, cat("c", number), system_clock());
    while (!stop_) turn(leases, random, *Owner::parse(cat("c", number)));
  }

  void turn(RecordedLeases& leases, Random& random, const Owner& owner) {
    const auto resource = ResourceName::parse(cat("r", random.below(4)));
    const Claim claim = Claim::make(random);
    auto answer = leases.acquire({.resource = *resource,
                                  .owner = owner,
                                  .claim = claim,
                                  .terms = {.ttl = kTtl},
                                  .note = {},
                                  .retake = {},
                                  .count_refusal = false});
    note(answer ? std::nullopt : std::optional(answer.error()));
    const auto* granted = answer ? std::get_if<api::Granted>(&*answer) : nullptr;
    if (granted == nullptr) return os::pause_for(Millis(20));
    ++grants_;
    const api::Grip grip{.resource = *resource,
                         .token = granted->lease.token,
                         .claim = claim,
                         .owner = owner,
                         .hint = granted->hint};
    for (std::uint64_t renewals = random.below(3); renewals > 0; --renewals) {
      const auto renewed = leases.renew(grip, kTtl);
      note(renewed ? std::nullopt : std::optional(renewed.error()));
    }
    const auto released = leases.release(grip);
    note(released ? std::nullopt : std::optional(released.error()));
  }

  void note(const std::optional<Error>& error) {
    if (!error) return;
    if (error->code == Code::UnknownOutcome) ++unknowns_;
    EXPECT_TRUE(error->code == Code::UnknownOutcome || error->code == Code::Unavailable)
        << error->message;
  }

  TempDir folder_;
  History history_;
  std::atomic<bool> stop_ = false;
  std::atomic<int> grants_ = 0;
  std::atomic<int> unknowns_ = 0;
  std::vector<std::thread> threads_;
};

// The member that leads, as one of them says.
std::size_t leader_of(EtcdCluster& etcd) {
  for (std::size_t i = 0; i < etcd.size(); ++i) {
    const Finished said = run({.argv = {"curl", "-s", "-m", "2", "-d", "{}",
                                        etcd.node(i).url() + "/v3/maintenance/status"}});
    const auto field = [&](const std::string& name) {
      const std::size_t at = said.out.find(cat('"', name, "\":\""));
      if (at == said.out.npos) return std::string();
      const std::size_t from = at + name.size() + 4;
      return said.out.substr(from, said.out.find('"', from) - from);
    };
    if (!field("leader").empty() && field("leader") == field("member_id")) return i;
  }
  return 0;
}

class EtcdThree : public ::testing::Test {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_ETCD();
    ASSERT_TRUE(etcd_.start());
  }
  // Not politely: without a majority that takes its time.
  void TearDown() override {
    for (std::size_t i = 0; i < etcd_.size(); ++i) etcd_.node(i).kill9();
  }
  // Traffic must go on after the fault: this many more grants. How soon is no matter here: three
  // members, twelve clients and their election share what the machine has left.
  static void expect_progress(Traffic& traffic, int more = 30) {
    const int before = traffic.grants();
    EXPECT_TRUE(wait_until([&] { return traffic.grants() > before + more; }, Millis(120'000)))
        << traffic.grants() - before << " grants";
  }
  static void judge(Traffic& traffic, int faults) {
    traffic.stop();
    const HistoryReport report = traffic.report();
    std::cout << report.operations << " operations, " << traffic.grants() << " grants, "
              << traffic.unknowns() << " unknown outcomes, " << faults << " faults\n";
    EXPECT_TRUE(report.violations.empty()) << report.text();
  }
  EtcdCluster etcd_{3};
};

TEST_F(EtcdThree, LeadersKilledDuringTrafficBreakNothing) {
  Traffic traffic(etcd_, 12);
  expect_progress(traffic);
  for (int i = 0; i < 3; ++i) {
    const std::size_t leader = leader_of(etcd_);
    etcd_.node(leader).kill9();
    expect_progress(traffic);
    const auto back = etcd_.node(leader).start();
    ASSERT_TRUE(back) << back.error().message;
    expect_progress(traffic);
  }
  judge(traffic, 3);
}

TEST_F(EtcdThree, ALeaderStoppedPastATtlBreaksNothing) {
  Traffic traffic(etcd_, 12);
  expect_progress(traffic);
  for (int i = 0; i < 2; ++i) {
    const std::size_t leader = leader_of(etcd_);
    etcd_.node(leader).freeze();
    const MonoTime since = now();
    expect_progress(traffic);
    while (now() - since < kTtl + Millis(1'000)) os::pause_for(Millis(50));
    etcd_.node(leader).thaw();
    expect_progress(traffic);
  }
  judge(traffic, 2);
}

// Reachable, but without its cluster: it must neither answer from what it has nor be believed.
TEST_F(EtcdThree, AMemberWithoutItsClusterClaimsNothing) {
  const auto store = open_etcd({etcd_.node(0).port()}, Millis(3'000));
  const auto other = open_etcd(ports_of(etcd_), Millis(3'000));
  ASSERT_EQ(outcome(store->commit({step_on(Step::Kind::Set, "k", "1")}, {})), "done");
  etcd_.node(1).freeze();
  etcd_.node(2).freeze();
  const MonoTime before = now();
  const auto reading = store->read({"k"});
  ASSERT_FALSE(reading);
  EXPECT_EQ(reading.error().code, Code::Unavailable);
  EXPECT_EQ(outcome(store->commit({step_on(Step::Kind::Check, "k")}, {})), "unknown_outcome")
      << "a commit of checks alone asks the cluster too";
  EXPECT_EQ(outcome(store->commit({step_on(Step::Kind::Set, "k", "2")}, {})), "unknown_outcome");
  EXPECT_LT(now() - before, Millis(10'500));
  etcd_.node(1).thaw();
  etcd_.node(2).thaw();
  EXPECT_TRUE(wait_until([&] { return other->read({"k"}).has_value(); }, Millis(60'000)));
  // Settled by a commit of one's own on the version that was expected, or by what is there.
  const std::string value = other->read({"k"}).value().entries.front().value;
  EXPECT_TRUE(value == "1" || value == "2") << value;
}

TEST_F(EtcdThree, AReadGoesToTheNextMemberWhenOneIsStopped) {
  const std::size_t leader = leader_of(etcd_);
  const std::size_t follower = (leader + 1) % 3;
  const auto store =
      open_etcd({etcd_.node(follower).port(), etcd_.node(leader).port()}, Millis(4'000));
  ASSERT_EQ(outcome(store->commit({step_on(Step::Kind::Set, "k", "1")}, {})), "done");
  etcd_.node(follower).freeze();
  EXPECT_TRUE(store->read({"k"}));
  EXPECT_EQ(outcome(store->commit({step_on(Step::Kind::Set, "k", "2")}, {})), "done");
  etcd_.node(follower).thaw();
}

}  // namespace
}  // namespace stint::test
