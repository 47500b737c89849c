// Faults on a real Redis: killed, frozen, cut off, emptied, restored, failed over, with a clock
// that went back. A commit is done, not done, or unknown; never reported wrong.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <set>
#include <thread>

#include "os/clock.h"
#include "os/pause.h"
#include "os/random.h"
#include "service/lease_service.h"
#include "tests/support/redis_client.h"
#include "tests/support/tcp_proxy.h"

namespace stint::test {
namespace {

using store::Finding;
using store::RedisStore;
using store::Store;

class RedisFault : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = RedisServer::missing(); !why.empty()) GTEST_SKIP() << why;
  }
  static void start(Server& server) {
    const auto started = server.start();
    ASSERT_TRUE(started) << started.error().message;
  }
};

// A master that does not wait for more replicas before it serves the first.
const RedisOptions kSyncAtOnce{
    .appendfsync = "always", .appendonly = true, .more = {"--repl-diskless-sync-delay", "0"}};

// One client with a whole lease service.
class LeaseClient {
 public:
  explicit LeaseClient(std::uint16_t port)
      : store(open_redis(redis_request(port))),
        ledger(*store, clock, 1000),
        leases(*store, ledger,
               service::begin_life(*store, random, clock.wall(), nullptr, {}).value(), clock,
               random, nullptr) {}
  // Acquires and releases; the token, or nothing.
  std::optional<Token> turn(std::string_view name) {
    const Claim claim = Claim::make(random);
    auto answer = leases.acquire({.resource = ResourceName::parse(name).value(),
                                  .owner = Owner::parse("ann").value(),
                                  .claim = claim,
                                  .terms = {Millis(60'000), {}, {}, {}},
                                  .note = "",
                                  .retake = std::nullopt,
                                  .count_refusal = false});
    EXPECT_TRUE(answer.has_value()) << (answer ? "" : answer.error().message);
    if (!answer || !std::holds_alternative<api::Granted>(*answer)) return std::nullopt;
    const Token token = std::get<api::Granted>(*answer).lease.token;
    EXPECT_TRUE(leases.release({ResourceName::parse(name).value(), token, claim, {}, {}}, false));
    return token;
  }
  int events(std::string_view kind) {
    int found = 0;
    const auto all =
        ledger.list({.after = "", .prefix = "", .limit = 1000, .newest = false}).value();
    for (const api::Event& event : all) {
      if (event.kind == kind) ++found;
    }
    return found;
  }

  os::SystemClock clock;
  os::SystemRandom random;
  std::unique_ptr<RedisStore> store;
  service::Ledger ledger;
  service::LeaseService leases;
};

// EVIDENCE-OF: G1 G11
TEST_F(RedisFault, Kill9UnderAnOpenClientLosesNothingWithFsyncAlways) {
  RedisServer server;
  start(server);
  LeaseClient client(server.port());
  EXPECT_TRUE(client.store->capabilities().durable);
  EXPECT_EQ(client.turn("db"), Token(1));
  for (std::uint64_t i = 2; i < 5; ++i) {
    ASSERT_TRUE(server.restart());
    EXPECT_EQ(client.turn("db"), Token(i)) << "nothing was lost: tokens go on one by one";
  }
  EXPECT_EQ(client.events("tail_may_be_lost"), 0);
}

// EVIDENCE-OF: G1
TEST_F(RedisFault, AfterARestartThatMayHaveLostATailTokensGoOnFarBeyond) {
  RedisServer server({.appendfsync = "everysec", .appendonly = true, .more = {}});
  start(server);
  LeaseClient client(server.port());
  LeaseClient other(server.port());
  EXPECT_FALSE(client.store->capabilities().durable);
  EXPECT_NE(client.store->capabilities().may_lose.find("two seconds"), std::string::npos);
  EXPECT_EQ(client.turn("db"), Token(1));
  EXPECT_EQ(other.turn("db"), Token(2));
  ASSERT_TRUE(server.restart());
  // Under the open clients, without any of them opening anew.
  const Token after = client.turn("db").value();
  EXPECT_GT(after.number(), 1ULL << 50U);
  EXPECT_EQ(other.turn("db"), Token(after.number() + 1)) << "once a restart";
  LeaseClient late(server.port());
  LeaseClient later(server.port());
  EXPECT_EQ(late.turn("db"), Token(after.number() + 2));
  EXPECT_EQ(late.events("tail_may_be_lost"), 1);
  ASSERT_TRUE(server.restart());
  EXPECT_GT(later.turn("db").value().number(), after.number() + 1000);
}

// The data of an earlier moment comes back, twice: what was given since must not be given again.
// EVIDENCE-OF: G1
TEST_F(RedisFault, VersionsAndTokensOfALostTailNeverComeAgain) {
  namespace fs = std::filesystem;
  RedisServer server({.appendfsync = "everysec", .appendonly = true, .more = {}});
  start(server);
  const std::string data = server.folder() + "/appendonlydir";
  const std::string backup = server.folder() + "/backup";
  LeaseClient client(server.port());
  EXPECT_EQ(client.turn("db"), Token(1));
  server.stop();
  fs::copy(data, backup, fs::copy_options::recursive);
  start(server);
  std::set<std::uint64_t> tokens;
  std::set<store::Version> versions;
  std::uint64_t highest = 0;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      const std::uint64_t token = client.turn("db").value().number();
      EXPECT_GT(token, highest);
      highest = token;
      EXPECT_TRUE(versions.insert(redis_put(*client.store, "k", "v")).second);
    }
    server.kill9();
    fs::remove_all(data);
    fs::copy(backup, data, fs::copy_options::recursive);
    start(server);
  }
}

TEST_F(RedisFault, AFrozenServerMakesASentCommitUnknownWithinTheTimeout) {
  RedisServer server;
  start(server);
  const auto store = open_redis(redis_request(server.port(), Millis(600)));
  ASSERT_NE(redis_put(*store, "k", "1"), 0U);
  server.freeze();
  const MonoTime begun = now();
  const auto sent = redis_commit(*store, redis_set("k", "2"));
  EXPECT_LT(now() - begun, Millis(3'000));
  ASSERT_FALSE(sent);
  EXPECT_EQ(sent.error().code, Code::UnknownOutcome) << sent.error().message;
  const auto unsent = redis_commit(*store, redis_set("k", "3"));
  ASSERT_FALSE(unsent);
  EXPECT_EQ(unsent.error().code, Code::Unavailable) << unsent.error().message;
  const auto read = store->read({"k"});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, Code::Unavailable);
  EXPECT_LT(now() - begun, Millis(6'000));
  server.thaw();
  EXPECT_TRUE(wait_until([&] { return store->read({"k"}).has_value(); }));
  EXPECT_NE(redis_get(*store, "k"), "3") << "what was never sent never happened";
}

TEST_F(RedisFault, ManyThreadsBehindAFrozenServerAreAllAnsweredInTime) {
  RedisServer server;
  start(server);
  const auto store = open_redis(redis_request(server.port(), Millis(800)));
  server.freeze();
  const MonoTime begun = now();
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 64; ++t) {
    threads.emplace_back([&, t] {
      const auto answer = redis_commit(*store, redis_set(cat("k", t), "v"));
      if (answer || (answer.error().code != Code::UnknownOutcome &&
                     answer.error().code != Code::Unavailable)) {
        ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LT(now() - begun, Millis(4'000));
}

// Increments by compare-and-commit from 64 threads while the server is killed again and again: what
// was acknowledged is there, what was refused is not, and only the unknown may be either.
// EVIDENCE-OF: G11
TEST_F(RedisFault, SixtyFourClientsAndManyKillsLoseNoIncrementAndInventNone) {
  constexpr int kThreads = 64;
  constexpr std::size_t kCounters = 8;
  constexpr int kKills = 6;
  RedisServer server;
  start(server);
  const auto store = open_redis(redis_request(server.port(), Millis(2'000)));
  std::array<std::atomic<std::uint64_t>, kCounters> done{};
  std::array<std::atomic<std::uint64_t>, kCounters> unknown{};
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      const std::size_t which = t % kCounters;
      const std::string key = cat("counter", which);
      while (!stop) {
        const auto reading = store->read({key});
        if (!reading) continue;
        const store::Entry& entry = reading->entries.front();
        store::Step step = redis_set(key, cat(parse_digits(entry.value).value_or(0) + 1));
        step.expect = entry.present() ? store::Expect::Seen : store::Expect::Absent;
        step.version = entry.version;
        const auto answer = redis_commit(*store, step);
        if (answer && std::holds_alternative<store::Committed>(*answer)) ++done[which];
        if (!answer && answer.error().code == Code::UnknownOutcome) ++unknown[which];
      }
    });
  }
  for (int i = 0; i < kKills; ++i) {
    os::pause_for(Millis(300));
    server.kill9();
    os::pause_for(Millis(50));
    start(server);
  }
  os::pause_for(Millis(300));
  stop = true;
  for (std::thread& thread : threads) thread.join();
  std::uint64_t operations = 0;
  std::uint64_t open = 0;
  for (std::size_t i = 0; i < kCounters; ++i) {
    const auto stands = parse_digits(redis_get(*store, cat("counter", i))).value_or(0);
    EXPECT_GE(stands, done[i]) << "an acknowledged increment is lost";
    EXPECT_LE(stands, done[i] + unknown[i]) << "one that was refused has happened";
    operations += done[i];
    open += unknown[i];
  }
  EXPECT_GT(operations, 0U);
  std::printf("%llu increments, %llu unknown, %d kills\n",
              static_cast<unsigned long long>(operations), static_cast<unsigned long long>(open),
              kKills);
}

TEST_F(RedisFault, AnAnswerThatIsCutOffIsUnknownAndHappenedOnce) {
  RedisServer server;
  start(server);
  TcpProxy proxy(server.port());
  const auto store = open_redis(redis_request(proxy.port()));
  const auto direct = open_redis(redis_request(server.port()));
  // The server knows the script from now on: the one request that follows is the commit.
  ASSERT_NE(redis_put(*store, "k", "0"), 0U);
  const auto revision = direct->revision().value();
  proxy.drop_replies(TcpProxy::Dropped::Cut);
  const auto answer = redis_commit(*store, redis_set("k", "1"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::UnknownOutcome) << answer.error().message;
  proxy.forward();
  EXPECT_EQ(redis_get(*store, "k"), "1");
  EXPECT_EQ(direct->revision().value(), revision + 1);
}

TEST_F(RedisFault, AQuestionThatNeverArrivedIsUnknownToo) {
  RedisServer server;
  start(server);
  TcpProxy proxy(server.port());
  const auto store = open_redis(redis_request(proxy.port()));
  ASSERT_NE(redis_put(*store, "k", "1"), 0U);
  proxy.cut_at_request_after(0);
  const auto answer = redis_commit(*store, redis_set("k", "2"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::UnknownOutcome);
  proxy.forward();
  EXPECT_EQ(redis_get(*store, "k"), "1");
}

TEST_F(RedisFault, AnIdleConnectionThatWasClosedIsMadeAnewAndNothingIsUnknown) {
  RedisServer server;
  start(server);
  TcpProxy proxy(server.port());
  const auto store = open_redis(redis_request(proxy.port()));
  for (int i = 0; i < 5; ++i) {
    ASSERT_NE(redis_put(*store, "k", cat(i)), 0U);
    proxy.cut();
    os::pause_for(Millis(20));
  }
  proxy.refuse();
  const auto answer = redis_commit(*store, redis_set("k", "x"));
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, Code::Unavailable) << "never sent";
}

TEST_F(RedisFault, ScriptsThatTheServerForgotAreGivenAgain) {
  RedisServer server;
  start(server);
  const auto store = open_redis(redis_request(server.port()));
  ASSERT_NE(redis_put(*store, "k", "1"), 0U);
  redis_cli(server.port(), {"SCRIPT", "FLUSH"});
  EXPECT_NE(redis_put(*store, "k", "2"), 0U);
  redis_cli(server.port(), {"SCRIPT", "FLUSH"});
  EXPECT_EQ(store->scan({.prefix = "k", .after = "", .limit = 9}).value().entries.size(), 1U);
}

TEST_F(RedisFault, AWatchOutlivesItsConnectionAndCostsNothingMeanwhile) {
  RedisServer server;
  start(server);
  TcpProxy proxy(server.port());
  const auto waiter = open_redis(redis_request(proxy.port()));
  const auto writer = open_redis(redis_request(server.port()));
  const auto watch = std::move(waiter->watch("k").value());
  const auto woken = [&](Millis within) {
    const bool is = os::wait_readable({watch->fd()}, now() + within).front();
    watch->acknowledge();
    return is;
  };
  const int before = proxy.counts().requests;
  EXPECT_FALSE(woken(Millis(300)));
  EXPECT_EQ(proxy.counts().requests, before) << "an idle waiter asks nothing";
  redis_put(*writer, "k", "1");
  EXPECT_TRUE(woken(Millis(5'000)));
  proxy.cut();
  EXPECT_TRUE(woken(Millis(5'000))) << "what came meanwhile was told to nobody: look";
  ASSERT_TRUE(wait_until([&] { return proxy.counts().open >= 1; }));
  EXPECT_TRUE(wait_until([&] {
    redis_put(*writer, "k", "2");
    return woken(Millis(200));
  }));
}

// EVIDENCE-OF: G12
TEST_F(RedisFault, EmptiedOrReplacedUnderAClientIsNoticed) {
  RedisServer server;
  start(server);
  const auto store = open_redis(redis_request(server.port()));
  ASSERT_NE(redis_put(*store, "k", "1"), 0U);
  redis_cli(server.port(), {"FLUSHALL"});
  const auto expect_refused = [&] {
    const auto answer = redis_commit(*store, redis_set("k", "2"));
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Code::Unavailable) << answer.error().message;
    EXPECT_FALSE(store->read({"k"}));
    EXPECT_FALSE(store->scan({.prefix = "", .after = "", .limit = 9}));
  };
  expect_refused();
  const auto anew = open_redis(redis_request(server.port()));
  EXPECT_TRUE(anew->opening().created);
  ASSERT_NE(redis_put(*anew, "k", "other"), 0U);
  expect_refused();
  EXPECT_EQ(redis_get(*anew, "k"), "other");
}

// As if the server's clock had been an hour ahead at the last write and was set right since.
// EVIDENCE-OF: G4
TEST_F(RedisFault, AClockThatWentBackNeitherRevivesNorProlongs) {
  RedisServer server;
  start(server);
  const auto store = open_redis(redis_request(server.port()));
  store::Step timed = redis_set("k", "v");
  timed.timer = store::Step::TimerOp::Start;
  timed.ttl = Millis(400);
  ASSERT_TRUE(redis_commit(*store, timed));
  const auto before = store->read({"k"}).value();
  const std::string field =
      std::string(trim(redis_cli(server.port(), {"HGET", "{stint}:records", "#now"})));
  auto numbers = split(field, ' ');
  ASSERT_EQ(numbers.size(), 4U);
  const std::uint64_t hour = 3'600'000'000;
  const std::uint64_t raw = parse_digits(numbers[2]).value();
  const std::uint64_t version = before.entries[0].version;
  const std::uint64_t fires = raw + hour + 400'000;
  redis_cli(server.port(), {"HSET", "{stint}:records", "#now",
                            cat(numbers[0], " ", numbers[1], " ", raw + hour, " 0"), ":k",
                            cat(version, " ", fires, " 400 v")});
  const auto after = store->read({"k"}).value();
  EXPECT_GE(*after.store_time, *before.store_time);
  EXPECT_EQ(after.entries[0].timer.state, TimerState::Running);
  EXPECT_LE(*after.entries[0].timer.remaining, Millis(400));
  const MonoTime begun = now();
  // Any write notices the step; from there time goes on.
  ASSERT_NE(redis_put(*store, "other", "v"), 0U);
  ASSERT_TRUE(wait_until(
      [&] { return store->read({"k"}).value().entries[0].timer.state == TimerState::Fired; }));
  EXPECT_LT(now() - begun, Millis(5'000)) << "an hour would have been added";
}

TEST_F(RedisFault, AReplicaIsRefusedAndWaitCountsThem) {
  RedisServer master(kSyncAtOnce);
  start(master);
  RedisServer replica({.appendfsync = "always",
                       .appendonly = true,
                       .more = {"--replicaof", cat("127.0.0.1 ", master.port())}});
  start(replica);
  const auto refused = RedisStore::open(redis_request(replica.port()));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().message.find("replica"), std::string::npos) << refused.error().message;
  auto waiting = redis_request(master.port(), Millis(1'000));
  waiting.address.options["wait"] = "1";
  std::unique_ptr<RedisStore> store;
  ASSERT_TRUE(wait_until([&] {
    auto opened = RedisStore::open(waiting);
    if (opened) store = std::move(*opened);
    return opened.has_value();
  }));
  EXPECT_NE(redis_put(*store, "k", "1"), 0U);
  replica.freeze();
  const auto alone = redis_commit(*store, redis_set("k", "2"));
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.error().code, Code::UnknownOutcome) << alone.error().message;
  EXPECT_EQ(redis_get(*store, "k"), "2") << "it did happen here";
  replica.thaw();
}

// EVIDENCE-OF: G1
TEST_F(RedisFault, AFailOverIsALostTail) {
  RedisServer master(kSyncAtOnce);
  start(master);
  RedisServer replica({.appendfsync = "always",
                       .appendonly = true,
                       .more = {"--replicaof", cat("127.0.0.1 ", master.port())}});
  start(replica);
  LeaseClient first(master.port());
  EXPECT_EQ(first.turn("db"), Token(1));
  ASSERT_TRUE(wait_until([&] {
    return redis_cli(replica.port(), {"HGET", "{stint}:records", ":own/db"}).find("token") !=
           std::string::npos;
  }));
  master.kill9();
  redis_cli(replica.port(), {"REPLICAOF", "NO", "ONE"});
  LeaseClient second(replica.port());
  EXPECT_GT(second.turn("db").value().number(), 1ULL << 50U);
  EXPECT_EQ(second.events("tail_may_be_lost"), 1);
}

TEST_F(RedisFault, KeysOfSomebodyElseAreLeftAlone) {
  RedisServer server;
  start(server);
  for (const auto& words :
       std::vector<std::vector<std::string>>{{"SET", "{stint}:records", "mine"},
                                             {"HSET", "{stint}:records", "mine", "1"},
                                             {"SADD", "{stint}:keys", "mine"},
                                             {"ZADD", "{stint}:keys", "1", "mine"}}) {
    redis_cli(server.port(), {"FLUSHALL"});
    redis_cli(server.port(), words);
    const auto refused = RedisStore::open(redis_request(server.port()));
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, Code::Unavailable);
    EXPECT_NE(refused.error().message.find("belongs to somebody else"), std::string::npos)
        << refused.error().message;
    EXPECT_EQ(trim(redis_cli(server.port(), {"DBSIZE"})), "1");
  }
}

TEST_F(RedisFault, AUserWhoMayNotDoItAllIsToldWhat) {
  RedisServer server;
  start(server);
  for (const char* missing : {"-publish", "-zadd", "-hdel", "-evalsha"}) {
    redis_cli(server.port(),
              {"ACL", "SETUSER", "half", "reset", "on", ">pw", "~*", "&*", "+@all", missing});
    auto request = redis_request(server.port());
    request.address.user = "half";
    request.address.password = "pw";
    const auto refused = RedisStore::open(request);
    ASSERT_FALSE(refused) << missing;
    EXPECT_EQ(refused.error().code, Code::Denied) << refused.error().message;
    EXPECT_EQ(refused.error().message.find("pw"), std::string::npos);
  }
  redis_cli(server.port(), {"ACL", "SETUSER", "enough", "reset", "on", ">pw", "~{stint}:*",
                            "&{stint}@*", "+@all", "-@dangerous", "+info"});
  auto request = redis_request(server.port());
  request.address.user = "enough";
  request.address.password = "pw";
  const auto store = open_redis(request);
  ASSERT_NE(redis_put(*store, "k", "v"), 0U);
  EXPECT_FALSE(store->capabilities().durable) << "CONFIG may not be asked: not known";
  EXPECT_NE(store->capabilities().may_lose.find("unknown"), std::string::npos);
  const Finding rights = store->examine().value().back();
  EXPECT_EQ(rights.check, "permissions");
  EXPECT_EQ(rights.level, Finding::Level::Warn) << rights.text;
  EXPECT_NE(rights.text.find("CONFIG GET"), std::string::npos) << rights.text;
}

}  // namespace
}  // namespace stint::test
