// Our proxy against nginx as the same reverse proxy: the same requests through each to the same
// upstream (another nginx, which answers at once).
#include <thread>

#include "base/check.h"
#include "base/text.h"
#include "bench/bench.h"
#include "tests/cli/stint.h"
#include "tests/support/loopback.h"
#include "tests/support/process.h"

namespace stint::bench {
namespace {

constexpr int kRounds = 5;
constexpr int kLatencyRounds = 7;
constexpr double kRateGoal = 0.5;
constexpr double kAddedGoal = 0.5;  // ms

// nginx with one worker: our proxy has one loop. `servers`: what its http block holds.
class Nginx {
 public:
  explicit Nginx(const std::string& servers) {
    const std::string log = dir_.file("error.log");
    test::write_text(
        dir_.file("nginx.conf"),
        cat("daemon off; worker_processes 1; pid ", dir_.file("pid"), "; error_log ", log,
            " crit;\nevents { worker_connections 1024; }\nhttp { access_log off; "
            "keepalive_requests 100000000; client_body_temp_path ",
            dir_.file("body"), "; proxy_temp_path ", dir_.file("proxy"), "; fastcgi_temp_path ",
            dir_.file("f"), "; uwsgi_temp_path ", dir_.file("u"), "; scgi_temp_path ",
            dir_.file("s"), ";\n", servers, "\n}\n"));
    child_ = std::make_unique<test::Child>(
        test::Command{.argv = {"nginx", "-p", dir_.path(), "-e", log, "-c", "nginx.conf"},
                      .die_with_parent = true});
  }

 private:
  const test::TempDir dir_;
  std::unique_ptr<test::Child> child_;
};

void wait_for(std::uint16_t port) {
  CHECK(test::wait_until([&] { return static_cast<bool>(test::connect_loopback(port)); }),
        "nobody listens");
}

std::string upstream_block(std::uint16_t port) {
  return cat("server { listen 127.0.0.1:", port, "; location / { return 200 \"ok\"; } }");
}

std::string proxy_block(std::uint16_t port, std::uint16_t upstream) {
  return cat("upstream u { server 127.0.0.1:", upstream,
             "; keepalive 128; keepalive_requests 100000000; }\nserver { listen 127.0.0.1:", port,
             "; location / { proxy_pass http://u; proxy_http_version 1.1; "
             "proxy_set_header Connection \"\"; } }");
}

// What is asked: a small PUT with a token.
struct Ask {
  std::string generation;
  std::string body = std::string(128, 'b');

  std::string script() const {
    return cat("wrk.method = 'PUT'\nwrk.body = '", body,
               "'\nwrk.headers['Fencing-Token'] = '1'\nwrk.headers['Fencing-Resource'] = 'site'\n"
               "wrk.headers['Fencing-Generation'] = '",
               generation, "'\n");
  }
  std::string text() const {
    return cat("PUT / HTTP/1.1\r\nHost: x\r\nFencing-Token: 1\r\nFencing-Resource: site\r\n",
               "Fencing-Generation: ", generation, "\r\nContent-Length: ", body.size(), "\r\n\r\n",
               body);
  }
};

double rate(std::uint16_t port, const std::string& script) {
  const test::Finished done = test::run(
      {.argv = {"wrk", "-t1", "-c64", "-d2s", "-s", script, cat("http://127.0.0.1:", port, "/")}},
      Millis(30'000));
  CHECK(done.exit_code == 0, done.err.c_str());
  CHECK(done.out.find("Non-2xx") == std::string::npos, done.out.c_str());
  const std::string_view label = "Requests/sec:";
  const std::size_t at = done.out.find(label);
  CHECK(at != std::string::npos, "wrk said nothing");
  return std::strtod(done.out.c_str() + at + label.size(), nullptr);
}

// One connection that stays.
class Asker {
 public:
  Asker(std::uint16_t port, std::string text)
      : fd_(test::connect_loopback(port)), text_(std::move(text)) {
    CHECK(static_cast<bool>(fd_), "not connected");
  }
  void ask() {
    CHECK(test::send_all(fd_.get(), text_), "not sent");
    std::string got;
    while (!got.ends_with("\r\n\r\nok")) {
      const auto more = test::receive(fd_.get(), 1);
      CHECK(!more.bytes.empty(), "no answer");
      got += more.bytes;
    }
    CHECK(got.starts_with("HTTP/1.1 200"), got.c_str());
  }

 private:
  os::Fd fd_;
  const std::string text_;
};

bool rates(std::uint16_t ours, std::uint16_t theirs, const std::string& script) {
  Comparison table{.name = "HTTP: guarded PUT, 64 connections",
                   .ours = "requests a second",
                   .theirs = "nginx as the same proxy",
                   .our_values = {},
                   .their_values = {},
                   .goal = Goal::AtLeast,
                   .bound = kRateGoal};
  for (int round = 0; round < kRounds; ++round) {
    const double mine = rate(ours, script);
    table.add(mine, rate(theirs, script));
  }
  return print(table);
}

bool latencies(std::uint16_t proxy, std::uint16_t upstream, const std::string& text) {
  Asker through(proxy, text);
  Asker direct(upstream, text);
  Measure added{.name = "HTTP: added p50 of one guarded PUT",
                .unit = "ms",
                .values = {},
                .at_most = kAddedGoal};
  for (int round = 0; round < kLatencyRounds; ++round) {
    std::vector<double> ours;
    std::vector<double> theirs;
    for (int i = 0; i < 300; ++i) {
      ours.push_back(1000 * seconds_of([&] { through.ask(); }));
      theirs.push_back(1000 * seconds_of([&] { direct.ask(); }));
    }
    added.values.push_back(spread_of(ours).median - spread_of(theirs).median);
  }
  return print(added);
}

int run() {
  for (const char* program : {"nginx", "wrk"}) {
    if (!test::find_program(program).empty()) continue;
    std::printf("%s is not installed (tools/setup.sh bench)\n", program);
    return 1;
  }
  const std::uint16_t upstream = test::free_port();
  const std::uint16_t theirs = test::free_port();
  const std::uint16_t ours = test::free_port();
  const Nginx behind(upstream_block(upstream));
  const Nginx front(proxy_block(theirs, upstream));
  const test::Stint stint;
  CHECK(stint({"acquire", "site", "--ttl", "1h"}).exit_code == 0, "no lease");
  test::Command command = stint.command({"proxy", "--listen", cat(":", ours), "--upstream",
                                         cat("http://127.0.0.1:", upstream), "--resource", "site"});
  command.die_with_parent = true;
  const test::Child proxy(command);
  wait_for(upstream);
  wait_for(theirs);
  CHECK(test::wait_until([&] { return proxy.err().find("admitting") != std::string::npos; }),
        "our proxy does not admit");
  const Ask ask{.generation = stint.lease("site", "generation")};
  const test::TempDir dir;
  const std::string script = dir.file("put.lua");
  test::write_text(script, ask.script());
  rate(ours, script);
  rate(theirs, script);
  print_header();
  bool met = rates(ours, theirs, script);
  met = latencies(ours, upstream, ask.text()) && met;
  return met ? 0 : 1;
}

}  // namespace
}  // namespace stint::bench

int main() { return stint::bench::run(); }
