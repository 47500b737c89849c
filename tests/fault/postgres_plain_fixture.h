// What the tests of plain commits in PostgreSQL share: a server, a schema each, and transactions of
// others that stay open until they are told to end.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "base/text.h"
#include "os/clock.h"
#include "store/postgres/postgres_store.h"
#include "tests/support/servers.h"

namespace stint::test::plain_commits {

using store::Committed;
using store::Expect;
using store::Step;
using store::Sync;

inline Step step(Step::Kind kind, std::string key, std::string value = "") {
  Step out;
  out.kind = kind;
  out.key = std::move(key);
  out.value = std::move(value);
  return out;
}
inline Step seen(Step out, store::Version version) {
  out.expect = version == 0 ? Expect::Absent : Expect::Seen;
  out.version = version;
  return out;
}
inline Step set(std::string key, std::string value, store::Version version) {
  return seen(step(Step::Kind::Set, std::move(key), std::move(value)), version);
}

inline bool committed(const Result<store::CommitAnswer>& answer) {
  return answer && std::holds_alternative<Committed>(*answer);
}

class PostgresPlain : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!PostgresServer::missing().empty()) return;
    server_ = new PostgresServer({"autovacuum=off", "max_connections=200"});
    const auto started = server_->start();
    ASSERT_TRUE(started) << started.error().message;
  }
  static void TearDownTestSuite() { delete std::exchange(server_, nullptr); }
  void SetUp() override {
    if (server_ == nullptr) GTEST_SKIP() << PostgresServer::missing();
    static int number = 0;
    schema_ = cat("plain_", ++number);
  }

  std::unique_ptr<store::Store> open(Millis timeout = Millis(30'000), std::uint16_t port = 0) {
    store::OpenRequest request;
    request.address.scheme = "postgres";
    request.address.user = "postgres";
    request.address.path = "postgres";
    request.address.hosts = {{.name = "127.0.0.1", .port = port == 0 ? server_->port() : port}};
    request.address.options["schema"] = schema_;
    request.timeout = timeout;
    auto store = store::PostgresStore::open(request, clock_);
    EXPECT_TRUE(store.has_value()) << (store ? "" : store.error().message);
    return store ? std::move(*store) : nullptr;
  }

  std::string sql(const std::string& text) const {
    const Finished done =
        run({.argv = {PostgresServer::program("psql"), "-XAtq", "-d", server_->url(), "-c", text},
             .env = {{"PGOPTIONS", cat("-c search_path=", schema_)}}});
    return done.exit_code == 0 ? done.out : cat("failed: ", done.err);
  }

  // psql that keeps its transaction open until it is told to end.
  class Held {
   public:
    Held(const PostgresPlain& test, const std::string& text, const std::string& end = "COMMIT")
        : file_(test.dir_.file("go")),
          child_({.argv = {PostgresServer::program("psql"), "-XAtq", "-d", server_->url(), "-c",
                           "BEGIN", "-c", text, "-c", "\\echo there", "-c",
                           cat("\\! while [ ! -e ", file_, " ]; do sleep 0.01; done"), "-c", end},
                  .env = {{"PGOPTIONS", cat("-c search_path=", test.schema_)}}}) {
      EXPECT_TRUE(wait_until([this] { return child_.out().find("there") != std::string::npos; }))
          << child_.err();
    }
    ~Held() { end(); }
    void end() {
      write_text(file_, "go");
      child_.wait(Millis(10'000));
    }

   private:
    std::string file_;
    Child child_;
  };

  // Whether so many wait for a lock of this kind: "relation" is the gate, others are rows.
  bool wait_for(const std::string& what, int count) const {
    return wait_until([&] {
      return sql(cat("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND"
                     " (wait_event = 'relation') = ",
                     what == "relation" ? "true" : "false")) == cat(count, "\n");
    });
  }

  store::Version version(store::Store& store, const std::string& key) {
    return store.read({key})->entries.front().version;
  }
  // Twice, so that the connection knows the mark and has the statement.
  void warm_up(store::Store& store) {
    ASSERT_TRUE(committed(store.commit({set("meta/store", "1", 0)}, Sync::Durable)));
    ASSERT_TRUE(committed(store.commit({set("k", "0", 0)}, Sync::Durable)));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(committed(checked(store, version(store, "k"))));
  }
  // Writes k, if the store's own record is as it was seen.
  Result<store::CommitAnswer> checked(store::Store& store, store::Version of_k) {
    return checked(store, of_k, version(store, "meta/store"));
  }
  static Result<store::CommitAnswer> checked(store::Store& store, store::Version of_k,
                                             store::Version meta) {
    return store.commit({set("k", "v", of_k), seen(step(Step::Kind::Check, "meta/store"), meta)},
                        Sync::Durable);
  }

  static inline PostgresServer* server_ = nullptr;
  std::string schema_;
  os::SystemClock clock_;
  TempDir dir_;
};

}  // namespace stint::test::plain_commits
