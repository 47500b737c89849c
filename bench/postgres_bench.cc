// The PostgreSQL store against the least that could be safe: one upsert in a transaction.
#include <postgresql/libpq-fe.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/check.h"
#include "base/text.h"
#include "bench/bench.h"
#include "bench/client.h"
#include "tests/support/process.h"
#include "tests/support/servers.h"

namespace stint::bench {
namespace {

constexpr int kRounds = 5;
constexpr int kClients = 32;
constexpr int kSeconds = 4;
constexpr const char* kUpsert =
    "INSERT INTO bare VALUES ($1, $2) ON CONFLICT (k) DO UPDATE SET v = excluded.v";

class Bare {
 public:
  explicit Bare(const test::PostgresServer& server)
      : conn_(::PQconnectdb(
            cat("host=127.0.0.1 port=", server.port(), " user=postgres dbname=postgres").c_str())) {
    CHECK(::PQstatus(conn_) == CONNECTION_OK, "no connection");
    done(::PQexec(
        conn_, "CREATE TABLE bare (k text PRIMARY KEY, v text NOT NULL) WITH (fillfactor = 80)"));
    done(::PQprepare(conn_, "upsert", kUpsert, 2, nullptr));
    done(::PQprepare(conn_, "lock", "SELECT pg_advisory_lock(1)", 0, nullptr));
    done(::PQprepare(conn_, "unlock", "SELECT pg_advisory_unlock(1)", 0, nullptr));
  }
  ~Bare() { ::PQfinish(conn_); }
  Bare(const Bare&) = delete;
  Bare& operator=(const Bare&) = delete;

  void transaction() {
    const std::string value = cat("a value of the size of a small record, number ", ++count_);
    const char* const words[] = {"key", value.c_str()};
    done(::PQexecPrepared(conn_, "upsert", 2, words, nullptr, nullptr, 1));
  }

  void advisory() {
    for (const char* const step : {"lock", "unlock"}) {
      done(::PQexecPrepared(conn_, step, 0, nullptr, nullptr, nullptr, 1));
    }
  }

 private:
  static void done(PGresult* result) {
    const ExecStatusType status = ::PQresultStatus(result);
    CHECK(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK, ::PQresultErrorMessage(result));
    ::PQclear(result);
  }
  PGconn* conn_;
  int count_ = 0;
};

bool single_lines(const test::PostgresServer& server) {
  Bare bare(server);
  Client client(server.url());
  for (int i = 0; i < 50; ++i) client.release(client.take("r"));
  const std::string against = "upsert transaction";
  const auto upsert = [&] { bare.transaction(); };

  // Every name was held before, as most are.
  std::vector<std::string> names;
  for (int i = 0; i < 100; ++i) names.push_back(cat("own-", i));
  for (const std::string& name : names) client.release(client.take(name));
  std::vector<api::Grip> grips;
  std::size_t next = 0;
  const auto take = [&] {
    if (next == names.size()) {
      for (const api::Grip& grip : grips) client.release(grip);
      grips.clear();
      next = 0;
    }
    grips.push_back(client.take(names[next++]));
  };
  // The median call has no release in it: they all happen in the first call of a hundred. The mean
  // processor time has.
  Took acquiring = take_turns({take, upsert, 100, kRounds}, "postgres: acquire", against);
  acquiring.wall.goal = Goal::AtMost;
  acquiring.wall.bound = 2.2;
  acquiring.server.name = "postgres: acquire and release: processor time of the server";

  const api::Grip held = client.take("held");
  Took renewing =
      take_turns({[&] { client.renew(held); }, upsert, 200, kRounds}, "postgres: renew", against);
  renewing.wall.goal = Goal::AtMost;
  renewing.wall.bound = 1.2;

  Client other(server.url());
  const auto refused = [&] { CHECK(!other.try_take("held"), "granted twice"); };
  for (int i = 0; i < 50; ++i) refused();
  // Which one is faster: the granted ones are what the others are compared with.
  Took refusing =
      take_turns({take, refused, 100, kRounds}, "postgres: granted acquire", "refused one");
  refusing.wall.goal = Goal::AtLeast;
  refusing.wall.bound = 5;
  refusing.server.name = "postgres: granted acquire and release: processor time of the server";

  // No goal: an advisory lock is in memory, ends with its connection, and gives no token.
  Took advisory = take_turns(
      {[&] { client.release(client.take("beside")); }, [&] { bare.advisory(); }, 100, kRounds},
      "postgres: acquire and release", "advisory lock and unlock");

  bool met = true;
  for (const Took* took : {&acquiring, &renewing, &refusing, &advisory}) {
    met &= print(took->wall);
    met &= print(took->quick);
    met &= print(took->server);
  }
  return met;
}

double pgbench_rate(const test::PostgresServer& server, const test::TempDir& dir) {
  const std::string script = dir.file("upsert.sql");
  test::write_text(script,
                   "INSERT INTO bare VALUES ('own-' || :client_id, 'a value of the size of a small"
                   " record, number ' || :client_id) ON CONFLICT (k) DO UPDATE SET v = excluded.v;"
                   "\n");
  const auto done =
      test::run({.argv = {test::PostgresServer::program("pgbench"), "-n", "-M", "prepared", "-c",
                          std::to_string(kClients), "-j", "2", "-T", std::to_string(kSeconds), "-f",
                          script, "-h", "127.0.0.1", "-p", std::to_string(server.port()), "-U",
                          "postgres", "postgres"}},
                Millis(60'000));
  const std::size_t at = done.out.find("tps = ");
  CHECK(done.exit_code == 0 && at != std::string::npos, done.err.c_str());
  return std::atof(done.out.c_str() + at + 6);
}

// Acquire and release in turn, each client a name of its own: each with connections of its own, or
// as threads of one process that share them, as at a server or in a program that holds many leases.
double lease_rate(const std::vector<Client*>& clients) {
  std::atomic<long> operations = 0;
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  const double took = seconds_of([&] {
    for (std::size_t i = 0; i < clients.size(); ++i) {
      threads.emplace_back([&, i] {
        const std::string name = cat("client-", i);
        while (!stop) {
          clients[i]->release(clients[i]->take(name));
          operations += 2;
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::seconds(kSeconds));
    stop = true;
    for (std::thread& thread : threads) thread.join();
  });
  return static_cast<double>(operations) / took;
}

class Clients {
 public:
  Clients(const std::string& url, bool sharing) {
    for (int i = 0; i < kClients; ++i) {
      if (!sharing || owned_.empty()) owned_.push_back(std::make_unique<Client>(url));
      all.push_back(owned_.back().get());
    }
  }
  std::vector<Client*> all;

 private:
  std::vector<std::unique_ptr<Client>> owned_;
};

bool many_lines(const test::PostgresServer& server) {
  const test::TempDir dir;
  const Clients sharing(server.url(), true);
  const Clients apart(server.url(), false);
  const auto line_of = [](std::string_view who, Goal goal) {
    return Comparison{cat("postgres: acquire, release in turn, ", kClients, " clients", who),
                      "operations/s",
                      "pgbench, upserts/s",
                      {},
                      {},
                      goal,
                      0.5};
  };
  Comparison together = line_of(", threads of one process", Goal::AtLeast);
  Comparison alone = line_of(", each with connections of its own", Goal::AtLeast);
  lease_rate(sharing.all);
  lease_rate(apart.all);
  for (int round = 0; round < kRounds; ++round) {
    const double theirs = pgbench_rate(server, dir);
    together.add(lease_rate(sharing.all), theirs);
    alone.add(lease_rate(apart.all), theirs);
  }
  const bool met = print(together);
  return print(alone) && met;
}

int run() {
  if (const std::string why = test::PostgresServer::missing(); !why.empty()) {
    std::fprintf(stderr, "%s\n", why.c_str());
    return 2;
  }
  test::PostgresServer server({"max_connections=300"});
  const auto started = server.start();
  CHECK(started.has_value(), started.has_value() ? "" : started.error().message.c_str());
  print_header();
  const bool one = single_lines(server);
  return many_lines(server) && one ? 0 : 1;
}

// For a profile: one client and one name, again and again, on a server that stands; or, with no
// pairs, many clients at once.
int drive(const std::string& url, int pairs) {
  if (pairs <= 0) {
    const Clients clients(url, pairs < 0);
    lease_rate(clients.all);
    std::printf("%.0f operations/s, %d clients\n", lease_rate(clients.all), kClients);
    return 0;
  }
  Client client(url);
  const double took = seconds_of([&] {
    for (int i = 0; i < pairs; ++i) client.release(client.take("driven"));
  });
  std::printf("%.0f us a pair\n", took / pairs * 1e6);
  const api::Grip held = client.take("renewed");
  const double renewing = seconds_of([&] {
    for (int i = 0; i < pairs; ++i) client.renew(held);
  });
  std::printf("%.0f us a renewal\n", renewing / pairs * 1e6);
  const double refusing = seconds_of([&] {
    for (int i = 0; i < pairs; ++i) CHECK(!client.try_take("renewed"), "granted twice");
  });
  std::printf("%.0f us a refusal\n", refusing / pairs * 1e6);
  return 0;
}

}  // namespace
}  // namespace stint::bench

// postgres_bench [URL PAIRS]: 0 many clients, -1 many threads of one.
int main(int count, char** words) {
  return count > 2 ? stint::bench::drive(words[1], std::atoi(words[2])) : stint::bench::run();
}
