// A guarded update transaction in PostgreSQL against the same without stint.admit(): on one
// connection, and on sixteen that share one token. With admit() in a round trip of its own, and
// sent along with BEGIN, as the guide recommends. For comparison: one more statement that does
// nothing, which is the least that a round trip of its own costs.
#include <postgresql/libpq-fe.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <memory>
#include <thread>

#include "base/check.h"
#include "base/text.h"
#include "bench/bench.h"
#include "guard/sql/postgres_guard.h"
#include "os/clock.h"
#include "tests/support/process.h"
#include "tests/support/servers.h"

namespace stint::bench {
namespace {

constexpr int kRounds = 5;
constexpr int kWriters = 16;
constexpr Millis kSpan{1'200};
constexpr const char* kLife = "11111111111111111111111111111111";

enum class How { Bare, Nothing, Guarded, Along };

// As an application writes: every statement prepared, one round trip each.
class Writer {
 public:
  Writer(const test::PostgresServer& server, int row)
      : conn_(::PQconnectdb(
            cat("host=127.0.0.1 port=", server.port(), " user=postgres dbname=postgres").c_str())),
        row_(std::to_string(row)) {
    CHECK(::PQstatus(conn_) == CONNECTION_OK, "no connection");
    done(::PQprepare(conn_, "update", "UPDATE doc SET n = n + 1 WHERE id = $1", 1, nullptr));
  }
  ~Writer() { ::PQfinish(conn_); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  void prepare_admit() {
    done(::PQprepare(conn_, "admit", cat("SELECT stint.admit('r', 1, '", kLife, "')").c_str(), 0,
                     nullptr));
    done(::PQprepare(conn_, "nothing", "SELECT 1", 0, nullptr));
  }
  void run(const char* sql) { done(::PQexec(conn_, sql)); }
  void write(How how) {
    run(how == How::Along ? "BEGIN; EXECUTE admit" : "BEGIN");
    if (how == How::Guarded || how == How::Nothing) {
      const char* name = how == How::Guarded ? "admit" : "nothing";
      done(::PQexecPrepared(conn_, name, 0, nullptr, nullptr, nullptr, 0));
    }
    const std::array<const char*, 1> words = {row_.c_str()};
    done(::PQexecPrepared(conn_, "update", 1, words.data(), nullptr, nullptr, 0));
    run("COMMIT");
  }

 private:
  static void done(PGresult* result) {
    const auto status = ::PQresultStatus(result);
    CHECK(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK, ::PQresultErrorMessage(result));
    ::PQclear(result);
  }
  PGconn* conn_;
  const std::string row_;
};

using Writers = std::vector<std::unique_ptr<Writer>>;

// Transactions in a second, all writers at once.
double rate(Writers& writers, How how) {
  std::atomic<int> count = 0;
  const MonoTime until = test::now() + kSpan;
  std::vector<std::thread> threads;
  for (auto& writer : writers) {
    threads.emplace_back([&] {
      while (test::now() < until) {
        writer->write(how);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return count / (static_cast<double>(kSpan.count()) / 1000);
}

void install(const test::PostgresServer& server) {
  const os::SystemClock clock;
  net::Address address;
  address.user = "postgres";
  address.path = "postgres";
  address.hosts = {{.name = "127.0.0.1", .port = server.port()}};
  auto guard = guard::open_postgres_guard({.address = address}, clock);
  CHECK(guard.has_value(), "no connection");
  CHECK((*guard)->install().has_value(), "not installed");
}

// One connection: both kinds of transactions in turn.
bool single(Writer& one, How how, const std::string& name, bool goal) {
  Took took = take_turns({.ours = [&] { one.write(how); },
                          .theirs = [&] { one.write(How::Bare); },
                          .each = 200,
                          .rounds = kRounds},
                         name, "without admit");
  took.wall.bound = 1.25;
  took.wall.goal = goal ? Goal::AtMost : Goal::None;
  took.quick.goal = Goal::None;
  took.server.goal = Goal::None;
  const bool good = print(took.wall);
  print(took.quick);
  print(took.server);
  return good;
}

// Sixteen at once. The time of a transaction: the reciprocal of the rate.
bool many(Writers& writers, How how, const std::string& name, bool goal = true) {
  Comparison table{.name = name,
                   .ours = "us a transaction",
                   .theirs = "without admit",
                   .our_values = {},
                   .their_values = {},
                   .goal = goal ? Goal::AtMost : Goal::None,
                   .bound = 1.25};
  for (int i = 0; i < kRounds; ++i) {
    const double ours = rate(writers, how);
    table.add(1e6 / ours, 1e6 / rate(writers, How::Bare));
  }
  return print(table);
}

bool all_lines(const test::PostgresServer& server) {
  Writers writers;
  for (int i = 0; i < kWriters; ++i) {
    writers.push_back(std::make_unique<Writer>(server, i));
    writers.back()->prepare_admit();
  }
  Writer& one = *writers.front();
  for (int i = 0; i < 200; ++i) one.write(i % 2 == 0 ? How::Guarded : How::Along);
  bool good = single(one, How::Guarded, "SQL: guarded update", true);
  good = single(one, How::Along, "SQL: guarded update, admit sent with BEGIN", true) && good;
  single(one, How::Nothing, "SQL: one more statement that does nothing", false);
  many(writers, How::Nothing, "SQL: one more statement that does nothing, 16 connections", false);
  good = many(writers, How::Guarded, "SQL: guarded update, 16 connections, one token") && good;
  return many(writers, How::Along,
              "SQL: guarded update, admit sent with BEGIN, 16 connections, one token") &&
         good;
}

}  // namespace
}  // namespace stint::bench

int main() {
  using namespace stint;
  if (const std::string why = test::PostgresServer::missing(); !why.empty()) {
    std::printf("%s\n", why.c_str());
    return 1;
  }
  test::PostgresServer server({"max_connections=50"});
  CHECK(server.start().has_value(), "the server does not start");
  {
    const test::Finished made = test::run(
        {.argv = {test::PostgresServer::program("psql"), "-Xq", "-d", server.url(), "-c",
                  "CREATE TABLE doc (id int PRIMARY KEY, n int) WITH (fillfactor = 50); INSERT "
                  "INTO doc SELECT i, 0 FROM generate_series(0, 15) i"}});
    CHECK(made.exit_code == 0, made.err.c_str());
  }
  bench::install(server);
  const test::Finished sealed =
      test::run({.argv = {test::PostgresServer::program("psql"), "-Xq", "-d", server.url(), "-c",
                          cat("SELECT stint.seal('r', 1, '", bench::kLife, "', 1, true)")}});
  CHECK(sealed.exit_code == 0, sealed.err.c_str());
  bench::print_header();
  return bench::all_lines(server) ? 0 : 1;
}
