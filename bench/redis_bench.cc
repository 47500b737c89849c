// Renewals by 64 threads on a Redis, against the least that could be safe: one bare EVALSHA of the
// same size, on a connection of its own for each of 64 threads.
#include <atomic>
#include <cstdio>
#include <ctime>
#include <thread>

#include "app/store_url.h"
#include "base/check.h"
#include "base/text.h"
#include "bench/bench.h"
#include "bench/client.h"
#include "store/redis/link.h"
#include "store/redis/options.h"
#include "tests/support/servers.h"

namespace stint::bench {
namespace {

constexpr int kThreads = 64;
constexpr int kRounds = 5;
constexpr Millis kLength{2000};
const os::SystemClock kClock;

struct Rate {
  double a_second = 0;
  double client_us = 0;  // processor time a call
  double server_us = 0;
};

Rate rate(const std::function<bool(std::size_t)>& work) {
  const double server = seconds_of_servers();
  const std::clock_t client = std::clock();
  std::atomic<long> done = 0;
  std::vector<std::thread> threads;
  const MonoTime until = kClock.mono() + kLength;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      while (kClock.mono() < until) {
        CHECK(work(t), "a call failed");
        ++done;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto count = static_cast<double>(done);
  return {count * 1000.0 / static_cast<double>(kLength.count()),
          static_cast<double>(std::clock() - client) * 1e6 / CLOCKS_PER_SEC / count,
          (seconds_of_servers() - server) * 1e6 / count};
}

// Reads two fields, asks the clock, writes two: the least that a safe renewal does.
constexpr std::string_view kBare =
    "local g = redis.call('HMGET', KEYS[1], ARGV[1], ARGV[2], ARGV[3]) "
    "local t = redis.call('TIME') "
    "redis.call('HSET', KEYS[1], ARGV[1], t[1] .. ' ' .. t[2], ARGV[3], ARGV[13]) "
    "return {1, 2, 3, 4, 5, 6}";

class Bare {
 public:
  explicit Bare(const std::string& url) {
    store::OpenRequest request;
    request.address = app::parse_store_url(url).value();
    const auto options = store::redis::read_options(request).value();
    for (int t = 0; t < kThreads; ++t) {
      links_.push_back(std::move(store::redis::Link::open(options, soon()).value()));
    }
    script_ = {kBare, links_[0]->ask({"SCRIPT", "LOAD", kBare}, soon()).value().text};
  }
  bool call(std::size_t t) {
    const std::string own = cat("own/r", t);
    const std::string alive = cat("alive/r", t);
    return links_[t]
        ->run(script_,
              {"{bench}:bare", "{bench}:none", "#now", own, alive, "C=**", "x", "1794744967458820",
               "0", "", "T=re", "x", "1794744967458820", "60000", R"({"standing":"granted"})"},
              soon())
        .has_value();
  }

 private:
  static MonoTime soon() { return kClock.mono() + Millis(10'000); }
  std::vector<std::unique_ptr<store::redis::Link>> links_;
  store::redis::Script script_;
};

int run() {
  if (const std::string why = test::RedisServer::missing(); !why.empty()) {
    std::fprintf(stderr, "%s\n", why.c_str());
    return 2;
  }
  test::RedisServer server;
  const auto started = server.start();
  CHECK(started.has_value(), started.has_value() ? "" : started.error().message.c_str());
  Bare bare(server.url());
  Client client(server.url());
  std::vector<api::Grip> grips;
  for (int t = 0; t < kThreads; ++t) grips.push_back(client.take(cat("r", t)));
  const std::string name = cat("redis: renew, ", kThreads, " threads");
  Comparison rates{name, "renewals/s", "bare EVALSHA/s", {}, {}, Goal::AtLeast, 0.7};
  Comparison servers{
      name + ": processor time of the server", "us", "bare EVALSHA, us", {}, {}, Goal::None, 0};
  Comparison clients = servers;
  clients.name = name + ": processor time of the client";
  for (int round = 0; round < kRounds; ++round) {
    const Rate theirs = rate([&](std::size_t t) { return bare.call(t); });
    const Rate ours = rate([&](std::size_t t) {
      client.renew(grips[t]);
      return true;
    });
    rates.add(ours.a_second, theirs.a_second);
    servers.add(ours.server_us, theirs.server_us);
    clients.add(ours.client_us, theirs.client_us);
  }
  print_header();
  const bool met = print(rates);
  print(servers);
  print(clients);
  return met ? 0 : 1;
}

}  // namespace
}  // namespace stint::bench

int main() { return stint::bench::run(); }
