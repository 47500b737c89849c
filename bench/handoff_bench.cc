// A lease that goes from one process to another that waits for it: from before the release to after
// the grant. And what waiting costs while nothing happens: bytes between a waiter and its server.
//
// The two processes are this program again: handoff_bench turns|wait URL NAME.
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/check.h"
#include "base/text.h"
#include "bench/bench.h"
#include "bench/client.h"
#include "os/pause.h"
#include "tests/support/process.h"
#include "tests/support/servers.h"
#include "tests/support/tcp_proxy.h"

namespace stint::bench {
namespace {

constexpr int kTurns = 30;      // of each process
constexpr Millis kHeld{120};    // long enough for the other to have gone to sleep
constexpr Millis kBetween{60};  // before it asks again: the other has it by then
constexpr Millis kIdle{5000};
constexpr Millis kSettling{1500};

std::int64_t now_ns() { return test::now().time_since_epoch().count(); }

// Prints when it was granted and when it was about to release.
int take_turns_at(const std::string& url, const std::string& name) {
  Client client(url);
  for (int i = 0; i < kTurns; ++i) {
    const api::Grip grip = client.wait_for(name);
    const std::int64_t granted = now_ns();
    os::pause_for(kHeld);
    std::printf("%lld %lld\n", static_cast<long long>(granted), static_cast<long long>(now_ns()));
    client.release(grip);
    os::pause_for(kBetween);
  }
  return 0;
}

int wait_at(const std::string& url, const std::string& name) {
  Client client(url);
  client.release(client.wait_for(name));
  return 0;
}

test::Command self(const std::string& what, const std::string& url, const std::string& name) {
  return {.argv = {"/proc/self/exe", what, url, name}, .die_with_parent = true};
}

struct Turn {
  std::int64_t granted = 0;
  std::int64_t released = 0;
  int by = 0;
};

void read_turns(const std::string& text, int by, std::vector<Turn>& turns) {
  for (const std::string_view line : split(text, '\n')) {
    const auto words = split(line, ' ');
    if (words.size() != 2) continue;
    turns.push_back({static_cast<std::int64_t>(parse_digits(words[0]).value()),
                     static_cast<std::int64_t>(parse_digits(words[1]).value()), by});
  }
}

bool hand_off_line(const std::string& store, const std::string& url, double at_most) {
  { const Client maker(url); }
  test::Child one(self("turns", url, "hand"));
  test::Child two(self("turns", url, "hand"));
  for (test::Child* child : {&one, &two}) {
    const auto ended = child->wait(Millis(120'000));
    CHECK(ended && ended->code == 0, child->err().c_str());
  }
  std::vector<Turn> turns;
  read_turns(one.out(), 1, turns);
  read_turns(two.out(), 2, turns);
  std::ranges::sort(turns, {}, &Turn::granted);
  Measure line{store + ": hand-off between two processes", "ms", {}, at_most};
  for (std::size_t i = 1; i < turns.size(); ++i) {
    // Taken back by the one that released it: the other has not come in this time. Left out, the
    // slow ones would be missing.
    line.values.push_back(static_cast<double>(turns[i].granted - turns[i - 1].released) / 1e6);
  }
  line.name += cat(" (", line.values.size(), ")");
  return print(line);
}

// With a lease that runs out long after.
bool idle_line(const std::string& store, const std::string& url, const test::TcpProxy& proxy,
               const std::string& proxied) {
  Client holder(url);
  const api::Grip grip = holder.take("idle");
  test::Child waiter(self("wait", proxied, "idle"));
  CHECK(test::wait_until([&] { return proxy.counts().connections > 0; }), "no waiter came");
  os::pause_for(kSettling);
  const auto before = proxy.counts();
  CHECK(before.bytes > 0, "the waiter does not come through the proxy");
  os::pause_for(kIdle);
  const auto after = proxy.counts();
  holder.release(grip);
  const auto ended = waiter.wait(Millis(30'000));
  CHECK(ended && ended->code == 0, waiter.err().c_str());
  return print(Measure{store + ": traffic of a waiter in 5 idle seconds",
                       "bytes",
                       {static_cast<double>(after.bytes - before.bytes)},
                       0});
}

template <class Server>
void start(Server& server, const std::string& missing) {
  CHECK(missing.empty(), missing.c_str());
  const auto started = server.start();
  CHECK(started.has_value(), started.has_value() ? "" : started.error().message.c_str());
}

bool both_lines(const std::string& store, const std::string& url, std::uint16_t port,
                double at_most) {
  const bool quick = hand_off_line(store, url, at_most);
  const test::TcpProxy proxy(port);
  std::string proxied = url;
  const std::string from = cat(":", port);
  const std::size_t at = proxied.find(from);
  CHECK(at != std::string::npos, "a URL without its port");
  proxied.replace(at, from.size(), cat(":", proxy.port()));
  return idle_line(store, url, proxy, proxied) && quick;
}

int run() {
  print_header();
  bool met = true;
  {
    const test::TempDir dir;
    met &= hand_off_line("sqlite", cat("sqlite:", dir.file("hand.db")), 5);
  }
  {
    test::PostgresServer server;
    start(server, test::PostgresServer::missing());
    met &= both_lines("postgres", server.url(), server.port(), 5);
  }
  {
    test::RedisServer server;
    start(server, test::RedisServer::missing());
    met &= both_lines("redis", server.url(), server.port(), 5);
  }
  test::EtcdCluster server;
  start(server, test::EtcdCluster::missing());
  met &= both_lines("etcd", cat("etcd://", server.hosts()), server.node(0).port(), 15);
  return met ? 0 : 1;
}

}  // namespace
}  // namespace stint::bench

int main(int count, char** words) {
  using namespace stint::bench;
  if (count == 4 && std::string_view(words[1]) == "turns") return take_turns_at(words[2], words[3]);
  if (count == 4 && std::string_view(words[1]) == "wait") return wait_at(words[2], words[3]);
  return run();
}
