// A store that is put back under a running `stint serve`: the server refuses it as a command that
// starts does, says so, and gives no token of the lost span again. On every store, however far the
// store is put back, and whoever made the commits that are lost.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <tuple>

#include "base/text.h"
#include "tests/cli/stint.h"
#include "tests/cli/stores/restorable.h"
#include "tests/support/loopback.h"
#include "tests/support/servers.h"
#include "tests/support/slice.h"

namespace stint::test {
namespace {

enum class Way { OneCommit, OneCommitOfAnother, AsManyAsWereMadeSince, ToEmpty };

std::string word(Way way) {
  switch (way) {
    case Way::OneCommit: return "OneCommit";
    case Way::OneCommitOfAnother: return "OneCommitOfAnother";
    case Way::AsManyAsWereMadeSince: return "AsManyAsWereMadeSince";
    case Way::ToEmpty: return "ToEmpty";
  }
  return {};
}

std::optional<std::uint64_t> granted_in(const Finished& done) {
  return done.exit_code == 0 ? parse_digits(trim(done.out)) : std::nullopt;
}

Finished grant_of(const Stint& world, const std::string& resource,
                  const std::string& on_held = "fail") {
  return world({"run", resource, "--on-held", on_held, "--", "printenv", "STINT_TOKEN"},
               Millis(60'000));
}

Command serving(const Stint& world, std::uint16_t port) {
  Command serve = world.command({"serve", "--listen", cat("127.0.0.1:", port)});
  serve.die_with_parent = true;
  return serve;
}

class ServedRestored : public ::testing::TestWithParam<std::tuple<RestorableKind, Way>> {
 protected:
  void SetUp() override {
    const std::string why = store_->start();
    if (why.find("not installed") != std::string::npos) GTEST_SKIP() << why;
    ASSERT_EQ(why, "");
    direct_.use_store(store_->url());
    stranger_.use_store(store_->url());
    if (kind().alone && way() == Way::OneCommitOfAnother) {
      GTEST_SKIP() << "nobody but the server has this store";
    }
    if (way() == Way::ToEmpty && kind().name == "SqliteRestore") {
      GTEST_SKIP() << "an empty file is nothing to restore; SqliteCopy does it";
    }
    serve();
  }
  static const RestorableKind& kind() { return std::get<0>(GetParam()); }
  static Way way() { return std::get<1>(GetParam()); }

  void serve() {
    server_.reset();
    server_ = std::make_unique<Child>(serving(direct_, port_));
    ASSERT_TRUE(wait_until([&] {
      return server_->err().find("listening on") != std::string::npos;
    })) << server_->err();
    served_.use_store(cat("http://127.0.0.1:", port_));
  }
  std::string ask_readyz() const {
    return ask(port_, "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 13,
               Millis(10'000))
        .bytes.substr(0, 12);
  }
  // One commit: the grant of a resource that nobody has.
  static std::optional<std::uint64_t> take(const Stint& world, const std::string& resource) {
    return granted_in(world({"acquire", resource, "--ttl", "1h"}));
  }
  // Grants that are lost: each resource's token.
  void lose(const Stint& world, const std::string& resource) {
    const auto token = take(world, resource);
    ASSERT_TRUE(token) << resource;
    lost_.emplace(resource, *token);
  }
  // What somebody tries in the restored store, again and again.
  void attempt(const Stint& world, const std::string& who) const {
    for (const auto& [resource, token] : lost_) {
      const Finished done = grant_of(world, resource);
      if (done.exit_code != 0) {
        EXPECT_EQ(done.exit_code, 69) << who << ": " << done.err;
        continue;
      }
      EXPECT_TRUE(kind().reserves) << who << " got " << resource << " " << done.out;
      EXPECT_GT(granted_in(done), token) << who << ", " << resource;
    }
  }
  // After the operator's word: the server and commands side by side.
  void go_on() const {
    std::mutex mutex;
    std::map<std::string, std::set<std::uint64_t>> given;
    const auto work = [&](const Stint& world) {
      for (int round = 0; round < rounds(); ++round) {
        for (const auto& [resource, token] : lost_) {
          const Finished done = grant_of(world, resource, "wait=20s");
          const std::lock_guard lock(mutex);
          EXPECT_GT(granted_in(done), token) << resource << ": " << done.err;
          EXPECT_TRUE(given[resource].insert(granted_in(done).value_or(0)).second) << done.out;
        }
      }
    };
    std::thread served([&] { work(served_); });
    if (!kind().alone) work(direct_);
    served.join();
  }
  // A hundred of each side by STINT_RESTORED_ROUNDS=100.
  static int rounds() { return asked("STINT_RESTORED_ROUNDS", 3); }

  const std::unique_ptr<Restorable> store_ = kind().make();
  const std::uint16_t port_ = free_port();
  Stint direct_;
  Stint served_;    // asks the server
  Stint stranger_;  // remembers nothing
  std::unique_ptr<Child> server_;
  std::set<std::pair<std::string, std::uint64_t>> lost_;
};

// EVIDENCE-OF: G1 G12
TEST_P(ServedRestored, IsRefusedByTheServerAndNoTokenOfTheLostSpanComesTwice) {
  ASSERT_TRUE(take(served_, "before"));
  if (!kind().alone) {
    ASSERT_TRUE(take(direct_, "too"));
  }
  store_->back_up();
  if (way() != Way::OneCommitOfAnother) lose(served_, "a");
  if (way() == Way::OneCommitOfAnother) lose(direct_, "a");
  if (way() == Way::AsManyAsWereMadeSince || way() == Way::ToEmpty) {
    for (const char* resource : {"b", "c"}) lose(served_, resource);
    if (!kind().alone) lose(direct_, "d");
  }
  way() == Way::ToEmpty ? store_->empty() : store_->put_back();
  if (way() == Way::AsManyAsWereMadeSince && !kind().alone && !kind().reserves) {
    // Nobody can be kept from it who remembers nothing.
    for (const auto& [resource, token] : lost_) take(stranger_, resource);
  }
  for (int round = 0; round < rounds(); ++round) {
    attempt(served_, "the server");
    if (!kind().alone) attempt(direct_, "a command");
  }
  if (!kind().reserves || way() == Way::ToEmpty) {
    EXPECT_TRUE(wait_until([&] { return ask_readyz().ends_with("503"); }, Millis(10'000)));
    EXPECT_TRUE(wait_until(
        [&] { return server_->err().find("the store has trouble") != std::string::npos; },
        Millis(15'000)))
        << server_->err();
  }

  for (const auto& [resource, token] : lost_) {
    stranger_({"release", resource, "--token", cat(token)});
  }
  if (kind().alone) server_.reset();
  const Finished word =
      direct_({"doctor", "--accept-restored", "--why", "the restored one is to be used"});
  ASSERT_EQ(word.exit_code, 0) << word.err;
  // A store that is gone for good for who has it open.
  for (const char* gone : {"while in use", "replaced by another"}) {
    if (!kind().alone && server_->err().find(gone) != std::string::npos) serve();
  }
  if (kind().alone) serve();
  EXPECT_TRUE(wait_until([&] { return ask_readyz().ends_with("200"); }, Millis(10'000)))
      << server_->err();
  go_on();
}

// A number that nobody was granted tells of no restored store, and no alarm rings.
// EVIDENCE-OF: G12
TEST(MistypedToken, WasNeverIssuedAndIsCountedAsThat) {
  Stint direct;
  direct.use_store(cat("sqlite:", direct.dir().file("store.db")));
  const std::uint16_t port = free_port();
  Child server(serving(direct, port));
  ASSERT_TRUE(wait_until([&] { return server.err().find("listening on") != std::string::npos; }));
  Stint served;
  served.use_store(cat("http://127.0.0.1:", port));
  ASSERT_EQ(served({"acquire", "r", "--ttl", "1h"}).exit_code, 0);
  for (const Stint* world : {&served, &direct}) {
    for (const char* verb : {"renew", "release", "check"}) {
      const Finished done = (*world)({verb, "r", "--token", "7", "--json"});
      EXPECT_EQ(done.exit_code, 12) << done.err;
      EXPECT_NE(done.err.find("never_issued"), std::string::npos) << done.err;
      EXPECT_EQ(done.err.find("went back"), std::string::npos) << done.err;
    }
  }
  const std::string counted =
      ask(port, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", 1'000'000,
          Millis(10'000))
          .bytes;
  EXPECT_NE(counted.find("stint_lost_leases_total{cause=\"restored\"} 0"), std::string::npos)
      << counted;
  EXPECT_NE(counted.find("stint_lost_leases_total{cause=\"never_issued\"} 3"), std::string::npos)
      << counted;
}

// A backup brings a key back that was revoked since, and knows nothing of one that was made since.
// EVIDENCE-OF: G12
TEST(RestoredKeys, ThatWereRevokedSinceAreRevokedAgainUnlessToldOtherwise) {
  Stint world;
  const std::string file = world.dir().file("store.db");
  world.use_store(cat("sqlite:", file));
  const auto sqlite = [&](const std::string& order) {
    const Finished done = run({.argv = {"sqlite3", file, cat(order, world.dir().file("backup"))}});
    ASSERT_EQ(done.exit_code, 0) << done.err;
  };
  for (const char* name : {"stays", "goes"}) {
    ASSERT_EQ(world({"key", "create", name, "--allow", "acquire"}).exit_code, 0);
  }
  ASSERT_EQ(world({"run", "r", "--", "true"}).exit_code, 0);
  sqlite(".backup ");
  ASSERT_EQ(world({"key", "revoke", "goes"}).exit_code, 0);
  ASSERT_EQ(world({"key", "create", "late", "--allow", "acquire"}).exit_code, 0);
  ASSERT_EQ(world({"run", "r", "--", "true"}).exit_code, 0);
  const auto in_force = [&](const std::string& name) {
    // Only one that is in force is found by its name.
    const Finished done = world({"key", "ls", "--json"});
    const std::size_t at = done.out.find(cat("\"", name, "\""));
    if (at == done.out.npos) return false;
    const std::size_t end = done.out.find('}', at);
    return done.out.substr(at, end - at).find("\"revoked_at_ms\":1") == std::string::npos;
  };
  sqlite(".restore ");
  const Finished kept =
      world({"doctor", "--accept-restored", "--why", "w", "--keep-keys", "--json"});
  ASSERT_EQ(kept.exit_code, 0) << kept.err;
  EXPECT_NE(kept.out.find("\"keys_in_force_again\":[{\"key\":"), std::string::npos) << kept.out;
  EXPECT_TRUE(in_force("goes"));
  sqlite(".restore ");
  const Finished word = world({"doctor", "--accept-restored", "--why", "w"});
  ASSERT_EQ(word.exit_code, 0) << word.err;
  EXPECT_NE(word.err.find("(goes) had been revoked since; it is revoked again"), std::string::npos)
      << word.err;
  EXPECT_NE(word.err.find("(late) was made since; it is gone"), std::string::npos) << word.err;
  EXPECT_EQ(word.err.find("(stays)"), std::string::npos) << word.err;
  EXPECT_FALSE(in_force("goes"));
  EXPECT_TRUE(in_force("stays"));
}

// Two addresses of one store are one memory: what was seen through one is remembered through the
// other.
// EVIDENCE-OF: G12
TEST(TwoAddresses, OfOneStoreRememberTheSame) {
  Stint world;
  const std::string folder = world.dir().file("place");
  const std::string other = world.dir().file("other");
  ASSERT_EQ(run({.argv = {"mkdir", folder}}).exit_code, 0);
  ASSERT_EQ(::symlink(folder.c_str(), other.c_str()), 0);
  const std::string file = cat(folder, "/store.db");
  const auto at = [&](const std::string& where, std::vector<std::string> words) {
    words.insert(words.end(), {"--store", cat("sqlite:", where, "/store.db")});
    return world(std::move(words));
  };
  const auto sqlite = [&](const std::string& order) {
    const Finished done = run({.argv = {"sqlite3", file, cat(order, world.dir().file("backup"))}});
    ASSERT_EQ(done.exit_code, 0) << done.err;
  };
  ASSERT_EQ(at(folder, {"acquire", "r"}).exit_code, 0);
  ASSERT_EQ(at(other, {"acquire", "s"}).exit_code, 0);
  sqlite(".backup ");
  ASSERT_EQ(at(folder, {"acquire", "t"}).exit_code, 0);
  sqlite(".restore ");
  EXPECT_EQ(at(other, {"acquire", "t"}).exit_code, 69);
  EXPECT_EQ(at(folder, {"acquire", "t"}).exit_code, 69);
}

// Asynchronous replication: the replica knows nothing of sixty grants that the server gave and
// told. Its sequences are ahead of all that it has.
// EVIDENCE-OF: G1 G12
TEST(FailedOver, APromotedReplicaThatMissesGrantsIsRefusedByTheRunningServer) {
  if (const std::string why = PostgresServer::missing(); !why.empty()) GTEST_SKIP() << why;
  PostgresServer primary;
  ASSERT_TRUE(primary.start());
  Stint direct;
  direct.use_store(primary.url());
  ASSERT_EQ(direct({"run", "r", "--", "true"}).exit_code, 0);
  PostgresServer replica;
  replica.follow(primary);
  ASSERT_TRUE(replica.start());
  const auto port_of = [](const PostgresServer& server) {
    return cat("127.0.0.1:", server.port());
  };
  // The URL names both: the server goes where it may write.
  const std::string one = primary.url();
  std::string both = one;
  both.replace(both.find(port_of(primary)), port_of(primary).size(),
               cat(port_of(primary), ",", port_of(replica)));
  direct.use_store(both);
  const std::uint16_t port = free_port();
  Child server(serving(direct, port));
  ASSERT_TRUE(wait_until([&] { return server.err().find("listening on") != std::string::npos; }))
      << server.err();
  Stint served;
  served.use_store(cat("http://127.0.0.1:", port));
  const auto sql = [](const PostgresServer& where, const std::string& text) -> std::string {
    const Finished done =
        run({.argv = {PostgresServer::program("psql"), where.url(), "-XAtqc", text}});
    EXPECT_EQ(done.exit_code, 0) << done.err;
    return std::string(trim(done.out));
  };
  ASSERT_TRUE(granted_in(grant_of(served, "r")));
  const std::string reached = sql(primary, "SELECT pg_current_wal_lsn()");
  ASSERT_TRUE(wait_until([&] {
    return sql(replica, cat("SELECT pg_last_wal_replay_lsn() >= '", reached, "'")) == "t";
  }));
  const auto sender = parse_digits(sql(primary, "SELECT pid FROM pg_stat_replication"));
  ASSERT_TRUE(sender);
  ::kill(static_cast<pid_t>(*sender), SIGSTOP);
  std::uint64_t newest = 0;
  const int lost = asked("STINT_LOST_GRANTS", 6);
  for (int i = 0; i < lost; ++i) {
    newest = granted_in(grant_of(served, "r")).value_or(0);
    ASSERT_GT(newest, 0U);
  }
  primary.kill9();
  sql(replica, "SELECT pg_promote()");
  Finished after;
  ASSERT_TRUE(wait_until([&] {
    after = grant_of(served, "r");
    return after.exit_code == 0 || after.err.find("went back") != std::string::npos;
  })) << after.err;
  EXPECT_EQ(after.exit_code, 69) << after.out << after.err;
  EXPECT_NE(after.err.find(cat("does not know token ", newest, ",")), std::string::npos)
      << after.err;
  const Finished fresh = direct({"acquire", "r"});
  EXPECT_EQ(fresh.exit_code, 69) << fresh.out << fresh.err;
  ASSERT_EQ(direct({"doctor", "--accept-restored", "--why", "failed over"}).exit_code, 0);
  // What was released last may still be held: its release was lost as well.
  const Finished on = grant_of(served, "other");
  EXPECT_GT(granted_in(on), newest) << on.err << server.err();
  EXPECT_EQ(direct.events({"\"store_went_back\""}), 1);
}

INSTANTIATE_TEST_SUITE_P(
    Store, ServedRestored,
    ::testing::Combine(::testing::ValuesIn(restorable_kinds()),
                       ::testing::Values(Way::OneCommit, Way::OneCommitOfAnother,
                                         Way::AsManyAsWereMadeSince, Way::ToEmpty)),
    [](const auto& kind) { return std::get<0>(kind.param).name + word(std::get<1>(kind.param)); });

}  // namespace
}  // namespace stint::test
