// etcd://: replies that are lost, servers that stop, and what a commit says then.
#include "tests/fault/etcd_fixture.h"

namespace stint::test {
namespace {

class EtcdFault : public ::testing::Test {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_ETCD();
    ASSERT_TRUE(etcd_.start());
    proxy_ = std::make_unique<TcpProxy>(etcd_.node(0).port());
  }
  std::unique_ptr<EtcdStore> direct() { return open_etcd({etcd_.node(0).port()}); }
  std::unique_ptr<EtcdStore> proxied(Millis timeout = Millis(5'000)) {
    return open_etcd({proxy_->port()}, timeout);
  }
  static std::uint64_t log_length(store::Store& store) { return store.appended("log/").value(); }

  EtcdCluster etcd_;
  std::unique_ptr<TcpProxy> proxy_;
};

// A kept connection that dies before the answer: libcurl would send the request again by itself.
TEST_F(EtcdFault, ACommitWhoseReplyIsCutIsUnknownAndHappenedOnce) {
  const auto store = proxied();
  const Step line = step_on(Step::Kind::Append, "log/", "x");
  ASSERT_EQ(outcome(store->commit({line}, store::Sync::Durable)), "done");
  for (std::uint64_t i = 1; i <= 5; ++i) {
    proxy_->drop_replies(TcpProxy::Dropped::Cut);
    EXPECT_EQ(outcome(store->commit({line}, store::Sync::Durable)), "unknown_outcome");
    proxy_->forward();
    EXPECT_EQ(log_length(*direct()), 1 + i);
  }
  Step once = step_on(Step::Kind::Set, "k", "v");
  once.expect = store::Expect::Absent;
  proxy_->drop_replies(TcpProxy::Dropped::Cut);
  EXPECT_EQ(outcome(store->commit({once}, store::Sync::Durable)), "unknown_outcome")
      << "sent twice it would be a conflict with itself";
  proxy_->forward();
  EXPECT_EQ(outcome(store->commit({once}, store::Sync::Durable)), "conflict");
}

TEST_F(EtcdFault, ACommitThatIsCutOnItsWayClaimsNothing) {
  const auto store = proxied();
  const Step line = step_on(Step::Kind::Append, "log/", "x");
  ASSERT_EQ(outcome(store->commit({line}, store::Sync::Durable)), "done");
  proxy_->cut_at_request_after(0);
  // Cut before its body was on the way it is known not to have happened, later it is unknown.
  const std::string cut = outcome(store->commit({line}, store::Sync::Durable));
  EXPECT_TRUE(cut == "unknown_outcome" || cut == "unavailable") << cut;
  proxy_->forward();
  EXPECT_EQ(log_length(*direct()), 1U);
  EXPECT_EQ(outcome(store->commit({line}, store::Sync::Durable)), "done");
}

TEST_F(EtcdFault, ACommitWithoutAnAnswerIsUnknownWhenTheTimeIsUp) {
  const auto store = proxied(Millis(1'000));
  ASSERT_EQ(outcome(store->commit({step_on(Step::Kind::Set, "k", "0")}, store::Sync::Durable)),
            "done");
  proxy_->drop_replies(TcpProxy::Dropped::Silently);
  const MonoTime before = now();
  EXPECT_EQ(outcome(store->commit({step_on(Step::Kind::Set, "k", "1")}, store::Sync::Durable)),
            "unknown_outcome");
  EXPECT_LT(now() - before, Millis(1'900));
  EXPECT_EQ(direct()->read({"k"}).value().entries.front().value, "1");
  const auto reading = store->read({"k"});
  ASSERT_FALSE(reading);
  EXPECT_EQ(reading.error().code, Code::Unavailable);
}

// A timer whose transaction may have happened keeps its etcd lease: revoking it would fire it.
TEST_F(EtcdFault, TheTimerOfAnUnknownCommitRuns) {
  const auto store = proxied();
  ASSERT_TRUE(store->revision());
  proxy_->drop_replies_after(1, TcpProxy::Dropped::Cut);  // the grant is answered
  EXPECT_EQ(outcome(store->commit({started("k", Millis(300'000))}, store::Sync::Durable)),
            "unknown_outcome");
  proxy_->forward();
  ASSERT_TRUE(store->revision());
  const auto other = direct();
  EXPECT_EQ(timer_of(*other, "k"), TimerState::Running);
  // A conflict gives its lease back, and that of the timer in place stays.
  Step absent = started("k", Millis(300'000));
  absent.expect = store::Expect::Absent;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(outcome(other->commit({absent}, {})), "conflict");
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(outcome(other->commit({extended("k", Millis(300'000))}, {})), "done");
  }
  EXPECT_EQ(timer_of(*other, "k"), TimerState::Running);
}

TEST_F(EtcdFault, NobodyThereIsUnavailableAtOnce) {
  const auto store = direct();
  etcd_.node(0).kill9();
  const MonoTime before = now();
  EXPECT_EQ(outcome(store->commit({step_on(Step::Kind::Set, "k", "1")}, {})), "unavailable");
  EXPECT_LT(now() - before, Millis(1'000));
}

// EVIDENCE-OF: G11
TEST_F(EtcdFault, WhatWasAcknowledgedSurvivesKill9AndWatchesGoOn) {
  const auto store = direct();
  ASSERT_EQ(
      outcome(store->commit({step_on(Step::Kind::Set, "k", "1"), started("t", Millis(60'000))},
                            store::Sync::Durable)),
      "done");
  const auto watch = std::move(store->watch("k").value());
  ASSERT_TRUE(etcd_.node(0).restart());
  EXPECT_TRUE(wait_until([&] { return store->read({"k"}).has_value(); }));
  const auto entries = store->read({"k", "t"}).value().entries;
  EXPECT_EQ(entries[0].value, "1");
  EXPECT_EQ(entries[1].timer.state, TimerState::Running);
  EXPECT_TRUE(os::wait_readable({watch->fd()}, now() + Millis(10'000)).front())
      << "after a new connection everybody looks again";
  watch->acknowledge();
  ASSERT_EQ(outcome(direct()->commit({step_on(Step::Kind::Set, "k", "2")}, {})), "done");
  EXPECT_TRUE(os::wait_readable({watch->fd()}, now() + Millis(10'000)).front());
}

TEST_F(EtcdFault, AWatchSurvivesCompaction) {
  const auto store = direct();
  const auto watch = std::move(store->watch("k").value());
  const auto other = direct();
  proxy_->cut();
  std::uint64_t revision = 0;
  for (int i = 0; i < 20; ++i) {
    ASSERT_EQ(outcome(other->commit({step_on(Step::Kind::Set, "x", "v")}, {})), "done");
    revision = other->revision().value();
  }
  const Finished compacted =
      run({.argv = {"curl", "-s", "-d", cat(R"({"revision":")", revision, R"("})"),
                    etcd_.node(0).url() + "/v3/kv/compaction"}});
  ASSERT_EQ(compacted.exit_code, 0) << compacted.err;
  // One that registers with what it saw long ago, and so asks for what is gone.
  const auto late = std::move(store->watch("other").value());
  EXPECT_TRUE(os::wait_readable({late->fd()}, now() + Millis(10'000)).front());
  late->acknowledge();
  watch->acknowledge();
  ASSERT_EQ(outcome(other->commit(
                {step_on(Step::Kind::Set, "k", "1"), step_on(Step::Kind::Set, "other", "1")}, {})),
            "done");
  EXPECT_TRUE(os::wait_readable({watch->fd()}, now() + Millis(10'000)).front());
  EXPECT_TRUE(os::wait_readable({late->fd()}, now() + Millis(10'000)).front());
}

// EVIDENCE-OF: G3 G4
TEST_F(EtcdFault, AServerThatWasStoppedPastATtlRevivesNothing) {
  const auto store = direct();
  const auto done = store->commit({started("k", Millis(2'000))}, store::Sync::Durable);
  ASSERT_EQ(outcome(done), "done");
  etcd_.node(0).freeze();
  os::pause_for(Millis(4'000));
  etcd_.node(0).thaw();
  EXPECT_TRUE(wait_until([&] { return timer_of(*store, "k") == TimerState::Fired; }));
  EXPECT_EQ(outcome(store->commit({extended("k", Millis(2'000))}, {})), "conflict");
}

// The timer in place is longer than the extension, but has less left: the new end is the later one.
// EVIDENCE-OF: G3
TEST_F(EtcdFault, ExtendTakesTheLaterEndOfALongerTimerToo) {
  const auto store = direct();
  ASSERT_EQ(outcome(store->commit({started("k", Millis(5'000)), started("plain", Millis(5'000)),
                                   started("full", Millis(600'000))},
                                  {})),
            "done");
  os::pause_for(Millis(3'500));
  const MonoTime before = now();
  ASSERT_EQ(
      outcome(store->commit({extended("k", Millis(4'000)), extended("full", Millis(4'000))}, {})),
      "done");
  EXPECT_TRUE(wait_until([&] { return timer_of(*store, "plain") == TimerState::Fired; }));
  EXPECT_EQ(timer_of(*store, "k"), TimerState::Running);
  EXPECT_TRUE(wait_until([&] { return timer_of(*store, "k") == TimerState::Fired; }));
  EXPECT_GE(now() - before, Millis(4'000));
  const auto full = store->read({"full"}).value().entries.front().timer;
  EXPECT_EQ(full.state, TimerState::Running);
  EXPECT_GT(full.remaining.value(), Millis(500'000));
  EXPECT_EQ(full.ttl, Millis(600'000)) << "an extension that moved nothing changes nothing";
}

// Tokens of one second: the store logs in again without being told.
TEST(EtcdLogin, IsRenewedWhenItRunsOut) {
  SKIP_WITHOUT_ETCD();
  EtcdCluster etcd;
  const TempDir keys;
  const Finished made =
      run({.argv = {"sh", "-ec",
                    cat("cd ", keys.path(), "; openssl genrsa -out key 2048 2>/dev/null; ",
                        "openssl rsa -in key -pubout -out pub 2>/dev/null")}});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  etcd.node(0).with({"--auth-token", cat("jwt,pub-key=", keys.file("pub"), ",priv-key=",
                                         keys.file("key"), ",sign-method=RS256,ttl=1s")});
  ASSERT_TRUE(etcd.start());
  for (const auto& [path, body] : std::vector<std::pair<std::string, std::string>>{
           {"/v3/auth/user/add", R"({"name":"root","password":"pw"})"},
           {"/v3/auth/role/add", R"({"name":"root"})"},
           {"/v3/auth/user/grant", R"({"user":"root","role":"root"})"},
           {"/v3/auth/enable", "{}"}}) {
    ASSERT_EQ(run({.argv = {"curl", "-s", "-d", body, etcd.node(0).url() + path}}).exit_code, 0);
  }
  auto request = request_to({etcd.node(0).port()}, Millis(5'000));
  request.address.user = "root";
  request.address.password = "pw";
  auto store = EtcdStore::open(request, system_clock());
  ASSERT_TRUE(store) << store.error().message;
  const auto watch = std::move((*store)->watch("k").value());
  for (int i = 0; i < 3; ++i) {
    os::pause_for(Millis(1'300));
    EXPECT_EQ(outcome((*store)->commit({started("t", Millis(60'000))}, {})), "done");
    EXPECT_EQ(timer_of(**store, "t"), TimerState::Running);
  }
  watch->acknowledge();
  ASSERT_EQ(outcome((*store)->commit({step_on(Step::Kind::Set, "k", "v")}, {})), "done");
  EXPECT_TRUE(os::wait_readable({watch->fd()}, now() + Millis(10'000)).front());
}

// A client that was stopped between the grant of its lease and the transaction.
TEST_F(EtcdFault, ALeaseThatRanOutOnTheWayIsGrantedAnew) {
  const auto store = proxied(Millis(20'000));
  ASSERT_TRUE(store->revision());
  const auto other = direct();
  std::thread late([&] {
    // The answer to the grant comes after the lease has ended.
    EXPECT_EQ(outcome(store->commit({started("k", Millis(2'000))}, {})), "done");
  });
  proxy_->delay(Millis(4'500));
  os::pause_for(Millis(6'000));
  proxy_->delay(Millis(0));
  late.join();
  EXPECT_EQ(timer_of(*other, "k"), TimerState::Running);
}

}  // namespace
}  // namespace stint::test
