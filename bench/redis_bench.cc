// redis_bench PORT: renewals by 64 threads on a Redis, against the least that could be safe: one
// bare EVALSHA of the same size on a connection of its own for each of 64 threads; and the hand-off
// between two processes.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <thread>

#include "base/text.h"
#include "os/clock.h"
#include "os/pause.h"
#include "os/random.h"
#include "service/lease_service.h"
#include "store/redis/link.h"
#include "store/redis/redis_store.h"

namespace stint {
namespace {

constexpr int kThreads = 64;
constexpr Millis kLength{2000};
const os::SystemClock kClock;

store::OpenRequest request_for(std::uint16_t port) {
  store::OpenRequest request;
  request.address.scheme = "redis";
  request.address.hosts = {{"127.0.0.1", port}};
  request.address.options["prefix"] = "bench";
  return request;
}

// A machine that others use as well makes rates a matter of luck; processor time is less so.
struct Rate {
  double a_second = 0;
  double client_us = 0;  // processor time a call
  double server_us = 0;
};

double server_seconds(store::redis::Link& link) {
  const auto info = link.ask({"INFO", "cpu"}, kClock.mono() + Millis(10'000)).value();
  double sum = 0;
  for (const std::string_view line : split(info.text, '\n')) {
    for (const std::string_view name : {"used_cpu_sys:", "used_cpu_user:"}) {
      if (line.starts_with(name)) sum += std::atof(std::string(line.substr(name.size())).c_str());
    }
  }
  return sum;
}

Rate rate(std::uint16_t port, const std::function<bool(int)>& work) {
  const auto options = store::redis::read_options(request_for(port)).value();
  const auto link =
      std::move(store::redis::Link::open(options, kClock.mono() + Millis(10'000)).value());
  const double server = server_seconds(*link);
  const std::clock_t client = std::clock();
  std::atomic<long> done = 0;
  std::vector<std::thread> threads;
  const MonoTime until = kClock.mono() + kLength;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      while (kClock.mono() < until && work(t)) ++done;
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto count = static_cast<double>(done);
  return {count * 1000.0 / static_cast<double>(kLength.count()),
          static_cast<double>(std::clock() - client) * 1e6 / CLOCKS_PER_SEC / count,
          (server_seconds(*link) - server) * 1e6 / count};
}

// Reads two fields, asks the clock, writes two: the least that a safe renewal does.
constexpr std::string_view kBare =
    "local g = redis.call('HMGET', KEYS[1], ARGV[1], ARGV[2], ARGV[3]) "
    "local t = redis.call('TIME') "
    "redis.call('HSET', KEYS[1], ARGV[1], t[1] .. ' ' .. t[2], ARGV[3], ARGV[13]) "
    "return {1, 2, 3, 4, 5, 6}";

Rate bare(std::uint16_t port) {
  const auto options = store::redis::read_options(request_for(port)).value();
  std::vector<std::unique_ptr<store::redis::Link>> links;
  const auto until = [] { return kClock.mono() + Millis(10'000); };
  for (int t = 0; t < kThreads; ++t) {
    links.push_back(std::move(store::redis::Link::open(options, until()).value()));
  }
  const auto loaded = links[0]->ask({"SCRIPT", "LOAD", kBare}, until()).value();
  const store::redis::Script script{kBare, loaded.text};
  return rate(port, [&](int t) {
    const std::string own = cat("own/r", t);
    const std::string alive = cat("alive/r", t);
    return links[static_cast<std::size_t>(t)]
        ->run(script,
              {"{bench}:bare", "{bench}:none", "#now", own, alive, "C=**", "x", "1794744967458820",
               "0", "", "T=re", "x", "1794744967458820", "60000", R"({"standing":"granted"})"},
              until())
        .has_value();
  });
}

struct Client {
  explicit Client(std::uint16_t port)
      : store(std::move(store::RedisStore::open(request_for(port)).value())),
        ledger(*store, kClock, 10'000),
        leases(*store, ledger,
               service::begin_life(*store, random, kClock.wall(), nullptr, {}).value(), kClock,
               random, nullptr) {}
  // Nothing: it is held.
  std::optional<api::Grip> take(const std::string& name) {
    const Claim claim = Claim::make(random);
    const auto resource = ResourceName::parse(name).value();
    const auto owner = Owner::parse("bench").value();
    auto answer = leases.acquire({.resource = resource,
                                  .owner = owner,
                                  .claim = claim,
                                  .terms = {Millis(60'000), {}, {}, {}},
                                  .note = "",
                                  .retake = std::nullopt,
                                  .count_refusal = false});
    if (!answer || !std::holds_alternative<api::Granted>(*answer)) return std::nullopt;
    const auto& granted = std::get<api::Granted>(*answer);
    return api::Grip{resource, granted.lease.token, claim, owner, granted.hint};
  }
  os::SystemRandom random;
  std::unique_ptr<store::Store> store;
  service::Ledger ledger;
  service::LeaseService leases;
};

Rate renewals(std::uint16_t port) {
  Client client(port);
  std::vector<api::Grip> grips;
  for (int t = 0; t < kThreads; ++t) {
    grips.push_back(
        client.take(cat("r", t, "-", kClock.mono().time_since_epoch().count())).value());
  }
  return rate(port, [&](int t) {
    return client.leases.renew(grips[static_cast<std::size_t>(t)], Millis(60'000)).has_value();
  });
}

// Two processes take turns; the time from before the release to after the other's grant.
void hand_off(std::uint16_t port) {
  constexpr int kTurns = 100;
  int ends[2];
  if (::pipe(ends) != 0) return;
  const std::string name = cat("hand-", kClock.mono().time_since_epoch().count());
  std::vector<pid_t> children;
  for (int p = 0; p < 2; ++p) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    Client client(port);
    for (int i = 0; i < kTurns; ++i) {
      const auto watch = std::move(client.leases.watch(ResourceName::parse(name).value()).value());
      std::optional<api::Grip> grip;
      while (!(grip = client.take(name))) {
        os::wait_readable({watch->fd()}, kClock.mono() + Millis(1000));
        watch->acknowledge();
      }
      std::int64_t times[2] = {kClock.mono().time_since_epoch().count(), 0};
      os::pause_for(Millis(5));  // the other one has gone to sleep
      times[1] = kClock.mono().time_since_epoch().count();
      if (!client.leases.release(*grip, false)) ::_exit(1);
      if (::write(ends[1], times, sizeof times) != sizeof times) ::_exit(1);
      os::pause_for(Millis(1));
    }
    ::_exit(0);
  }
  ::close(ends[1]);
  std::vector<std::pair<std::int64_t, std::int64_t>> turns;
  std::int64_t times[2];
  while (::read(ends[0], times, sizeof times) == sizeof times)
    turns.emplace_back(times[0], times[1]);
  for (const pid_t child : children) ::waitpid(child, nullptr, 0);
  std::sort(turns.begin(), turns.end());
  std::vector<double> gaps;
  for (std::size_t i = 1; i < turns.size(); ++i) {
    gaps.push_back(static_cast<double>(turns[i].first - turns[i - 1].second) / 1e6);
  }
  if (gaps.empty()) return;
  std::sort(gaps.begin(), gaps.end());
  std::printf("hand-off     p50 %.2f ms, p99 %.2f ms, %zu turns\n", gaps[gaps.size() / 2],
              gaps[gaps.size() * 99 / 100], gaps.size());
}

}  // namespace
}  // namespace stint

int main(int count, char** words) {
  const auto port = count == 2 ? stint::parse_digits(words[1]) : std::nullopt;
  if (!port || *port > 65'535) return 2;
  const auto where = static_cast<std::uint16_t>(*port);
  stint::hand_off(where);
  for (int round = 0; round < 3; ++round) {
    const auto bare = stint::bare(where);
    const auto renew = stint::renewals(where);
    std::printf("renew        %.0f/s, bare EVALSHA %.0f/s: %.2f", renew.a_second, bare.a_second,
                renew.a_second / bare.a_second);
    std::printf(
        "; processor time a call: client %.1f against %.1f us, server %.1f against %.1f us\n",
        renew.client_us, bare.client_us, renew.server_us, bare.server_us);
  }
  return 0;
}
