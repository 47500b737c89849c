// Queues: embedded with eight threads against the bare store; PostgreSQL with sixteen workers
// against SKIP LOCKED by hand; a claim among a million; how soon a waiting worker starts.
#include <postgresql/libpq-fe.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/check.h"
#include "base/text.h"
#include "bench/bench.h"
#include "bench/client.h"
#include "os/pause.h"
#include "tests/support/process.h"
#include "tests/support/servers.h"

namespace stint::bench {
namespace {

constexpr int kRounds = 5;
constexpr int kThreads = 8;

api::PutRequest item(const core::QueueName& queue) {
  return {.queue = queue,
          .payload = "{\"commit\":\"4f2a9c\",\"branch\":\"main\"}",
          .priority = 0,
          .delay = {},
          .unique = {},
          .labels = {},
          .by = "bench",
          .limits = {},
          .create = true};
}

core::QueueName name(std::string_view text) { return core::QueueName::parse(text).value(); }

api::ItemRef claim(api::Queue& queue, const core::QueueName& from, Random& random) {
  while (true) {
    auto answer = queue.claim(
        {.queue = from, .owner = Owner::parse("bench").value(), .claim = Claim::make(random)});
    CHECK(answer.has_value(), "no claim");
    if (const auto* got = std::get_if<api::ClaimedItem>(&*answer)) {
      return {got->item.id, got->item.item.epoch};
    }
  }
}

// put, claim, complete: `count` of each, by so many threads; each with its own way to them.
double items_a_second(int threads, int count, const std::function<void(int)>& one) {
  std::atomic<int> left = count;
  const double seconds = seconds_of([&] {
    std::vector<std::thread> all;
    for (int i = 0; i < threads; ++i) {
      all.emplace_back([&, i] {
        while (left.fetch_sub(1) > 0) one(i);
      });
    }
    for (std::thread& thread : all) thread.join();
  });
  return count / seconds;
}

void whole_life(api::Queue& queue, const core::QueueName& in) {
  thread_local os::SystemRandom random;
  CHECK(queue.put(item(in)).has_value(), "not put");
  const api::ItemRef ref = claim(queue, in, random);
  auto done = queue.complete({.ref = ref, .result = std::nullopt, .then = {}});
  CHECK(done.has_value() && std::holds_alternative<api::ItemDone>(*done), "not completed");
}

bool embedded() {
  const test::TempDir dir;
  Client client(cat("sqlite:", dir.file("bench.db")));
  const core::QueueName jobs = name("jobs");
  CHECK(client.queue().put(item(jobs)).has_value(), "not put");
  Comparison line{.name = "queue: embedded, 8 threads: put + claim + complete",
                  .ours = "items/s",
                  .theirs = "three durable commits of the bare store",
                  .our_values = {},
                  .their_values = {},
                  .goal = Goal::AtLeast,
                  .bound = 0.5};
  std::atomic<int> number = 0;
  const auto bare = [&](int) {
    const int n = ++number;
    for (int i = 0; i < 3; ++i) {
      store::Step step;
      step.kind = store::Step::Kind::Set;
      step.key = cat("bare/", n % 1000, ".", i);
      step.value = std::string(300, 'x');
      CHECK(client.store().commit({step}, store::Sync::Durable).has_value(), "no commit");
    }
  };
  constexpr int kItems = 4000;
  for (int round = 0; round < kRounds; ++round) {
    const double ours =
        items_a_second(kThreads, kItems, [&](int) { whole_life(client.queue(), jobs); });
    line.add(ours, items_a_second(kThreads, kItems, bare));
  }
  bool good = print(line);
  Measure rate{.name = "queue: embedded: seconds for 5,000 items",
               .unit = "s",
               .values = {},
               .at_most = 1.0};
  for (const double value : line.our_values) rate.values.push_back(5000 / value);
  good &= print(rate);
  return good;
}

// The middle of many claims, among so many that wait.
double claim_seconds(Client& client, const core::QueueName& queue, int claims) {
  os::SystemRandom random;
  std::vector<double> all;
  for (int i = 0; i < claims; ++i) {
    all.push_back(seconds_of([&] { claim(client.queue(), queue, random); }));
  }
  return spread_of(all).median;
}

void fill(Client& client, const core::QueueName& queue, int count) {
  std::atomic<int> left = count;
  std::vector<std::thread> all;
  for (int i = 0; i < kThreads; ++i) {
    all.emplace_back([&] {
      while (left.fetch_sub(1) > 0) CHECK(client.queue().put(item(queue)).has_value(), "not put");
    });
  }
  for (std::thread& thread : all) thread.join();
}

// Very many at once, as put() writes them, sixty in a commit.
void fill_in_bulk(Client& client, const core::QueueName& queue, int count) {
  constexpr int kAtOnce = 60;
  CHECK(client.queue().configure({queue, {}}).has_value(), "no queue");
  os::SystemRandom random;
  os::SystemClock clock;
  core::ItemIds ids;
  service::StoredItem stored;
  std::vector<store::Step> none;
  while (count > 0) {
    std::vector<store::Step> steps;
    for (int i = 0; i < std::min(count, kAtOnce); ++i) {
      const core::ItemId id = ids.make(queue, 0, clock.wall(), random);
      stored.put_at = clock.wall();
      stored.payload = service::make_content(id, "p", item(queue).payload, 1000, none);
      store::Step& step = steps.emplace_back();
      step.kind = store::Step::Kind::Set;
      step.key = service::shelf_key(service::Shelf::Ready, id);
      step.value = service::encode(stored);
    }
    count -= kAtOnce;
    CHECK(client.store().commit(steps, store::Sync::Relaxed).has_value(), "no commit");
  }
}

bool among_many(int many) {
  const test::TempDir dir;
  Client client(cat("sqlite:", dir.file("bench.db")));
  const core::QueueName few_queue = name("few");
  const core::QueueName many_queue = name("many");
  fill_in_bulk(client, many_queue, many);
  Comparison line{.name = cat("queue: a claim among ", many, " waiting items"),
                  .ours = "us",
                  .theirs = "among 1,000",
                  .our_values = {},
                  .their_values = {},
                  .goal = Goal::AtMost,
                  .bound = 1.5};
  for (int round = 0; round < kRounds; ++round) {
    fill_in_bulk(client, few_queue, 1000);
    const double ours = claim_seconds(client, many_queue, 300) * 1e6;
    line.add(ours, claim_seconds(client, few_queue, 300) * 1e6);
  }
  return print(line);
}

// ---- PostgreSQL, against what is written by hand

class ByHand {
 public:
  explicit ByHand(const test::PostgresServer& server)
      : conn_(::PQconnectdb(
            cat("host=127.0.0.1 port=", server.port(), " user=postgres dbname=postgres").c_str())) {
    CHECK(::PQstatus(conn_) == CONNECTION_OK, "no connection");
    ::PQclear(::PQexec(conn_, "SET client_min_messages = warning"));
    ::PQclear(
        ::PQexec(conn_,
                 "CREATE TABLE IF NOT EXISTS jobs (id bigserial PRIMARY KEY, state text NOT "
                 "NULL, payload text NOT NULL, owner text, epoch bigint NOT NULL DEFAULT 0)"));
    ::PQclear(
        ::PQexec(conn_, "CREATE INDEX IF NOT EXISTS waiting ON jobs (id) WHERE state = 'waiting'"));
  }
  ~ByHand() { ::PQfinish(conn_); }
  ByHand(const ByHand&) = delete;
  ByHand& operator=(const ByHand&) = delete;

  void whole_life() {
    ask("INSERT INTO jobs (state, payload) VALUES ('waiting', '{\"commit\":\"4f2a9c\"}')");
    const std::string id = ask(
        "UPDATE jobs SET state = 'claimed', owner = 'bench', epoch = epoch + 1 WHERE id = (SELECT "
        "id FROM jobs WHERE state = 'waiting' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) "
        "RETURNING id");
    if (!id.empty()) ask(cat("UPDATE jobs SET state = 'done' WHERE id = ", id, " AND epoch = 1"));
  }

 private:
  std::string ask(const std::string& sql) {
    PGresult* result = ::PQexec(conn_, sql.c_str());
    const auto status = ::PQresultStatus(result);
    CHECK(status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK, ::PQresultErrorMessage(result));
    std::string out = ::PQntuples(result) > 0 ? ::PQgetvalue(result, 0, 0) : "";
    ::PQclear(result);
    return out;
  }
  PGconn* conn_;
};

bool on_postgres() {
  constexpr int kWorkers = 16;
  constexpr int kItems = 1500;
  test::PostgresServer server;
  CHECK(server.start().has_value(), "no PostgreSQL");
  std::vector<std::unique_ptr<Client>> clients;
  std::vector<std::unique_ptr<ByHand>> hands;
  for (int i = 0; i < kWorkers; ++i) {
    clients.push_back(std::make_unique<Client>(server.url()));
    hands.push_back(std::make_unique<ByHand>(server));
  }
  const core::QueueName jobs = name("jobs");
  fill(*clients[0], jobs, 100);  // so that nobody finds it empty
  for (int i = 0; i < 100; ++i) hands[0]->whole_life();
  Comparison line{.name = "queue: postgres, 16 workers: put + claim + complete",
                  .ours = "items/s",
                  .theirs = "FOR UPDATE SKIP LOCKED by hand",
                  .our_values = {},
                  .their_values = {},
                  .goal = Goal::AtLeast,
                  .bound = 0.4};
  for (int round = 0; round < kRounds; ++round) {
    const double ours = items_a_second(kWorkers, kItems, [&](int i) {
      whole_life(clients[static_cast<std::size_t>(i)]->queue(), jobs);
    });
    line.add(ours, items_a_second(kWorkers, kItems, [&](int i) {
               hands[static_cast<std::size_t>(i)]->whole_life();
             }));
  }
  return print(line);
}

// ---- how soon a waiting worker has what was put

bool start_latency(const std::string& what, const std::string& url) {
  Client putter(url);
  Client worker(url);
  const core::QueueName jobs = name("soon");
  CHECK(putter.queue().configure({jobs, {}}).has_value(), "no queue");
  Measure line{.name = cat("queue: ", what, ": put until a waiting worker has it"),
               .unit = "ms",
               .values = {},
               .at_most = 20};
  std::atomic<bool> stop = false;
  std::atomic<int> got = 0;
  std::thread thread([&] {
    os::SystemRandom random;
    auto watch = worker.queue().watch(jobs);
    CHECK(watch.has_value(), "no watch");
    while (!stop) {
      (*watch)->acknowledge();
      auto answer = worker.queue().claim({.queue = jobs,
                                          .owner = Owner::parse("w").value(),
                                          .claim = Claim::make(random),
                                          .will_wait = true});
      CHECK(answer.has_value(), "no answer");
      if (std::holds_alternative<api::ClaimedItem>(*answer)) {
        ++got;
        continue;
      }
      os::wait_readable({(*watch)->fd()}, os::SystemClock().mono() + Millis(500));
    }
  });
  for (int i = 0; i < 50; ++i) {
    os::pause_for(Millis(30));  // until it waits again
    const int before = got;
    line.values.push_back(1000 * seconds_of([&] {
                            CHECK(putter.queue().put(item(jobs)).has_value(), "not put");
                            while (got == before) os::pause_for(Nanos(100'000));
                          }));
  }
  stop = true;
  thread.join();
  return print(line);
}

int run(const std::string& only) {
  print_header();
  const char* const asked = std::getenv("STINT_WAITING");
  const auto wanted = [&](const char* part) { return only.empty() || only == part; };
  bool good = true;
  if (wanted("embedded")) good &= embedded();
  if (wanted("many")) good &= among_many(asked != nullptr ? std::atoi(asked) : 1'000'000);
  if (wanted("postgres")) good &= on_postgres();
  if (!wanted("latency")) return good ? 0 : 1;
  const test::TempDir dir;
  good &= start_latency("embedded", cat("sqlite:", dir.file("soon.db")));
  {
    test::PostgresServer server;
    CHECK(server.start().has_value(), "no PostgreSQL");
    good &= start_latency("postgres", server.url());
  }
  {
    test::RedisServer server;
    CHECK(server.start().has_value(), "no Redis");
    good &= start_latency("redis", server.url());
  }
  return good ? 0 : 1;
}

}  // namespace
}  // namespace stint::bench

// queue_bench [embedded|many|postgres|latency]: all of them, or one.
int main(int argc, char** argv) { return stint::bench::run(argc > 1 ? argv[1] : ""); }
