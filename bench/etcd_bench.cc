// The etcd store against the least that could be safe: one transaction through the gateway.
#include <cstdio>

#include "app/store_url.h"
#include "base/check.h"
#include "base/text.h"
#include "bench/bench.h"
#include "bench/client.h"
#include "store/etcd/gateway.h"
#include "store/etcd/opening.h"
#include "store/etcd/txn.h"
#include "store/etcd/wire.h"
#include "tests/support/servers.h"

namespace stint::bench {
namespace {

using namespace store::etcd;

// Compares a record and writes another.
class Bare {
 public:
  explicit Bare(const std::string& url)
      : http_(net::make_http_client({}, clock_)),
        gateway_(settings_of(app::parse_store_url(url).value()).value().gateway, *http_, clock_) {}
  void transaction() {
    Txn txn;
    txn.compare(is_absent({"bare/own"}));
    txn.then(put("bare/alive", cat("a value of the size of a small record, number ", ++count_)));
    const Reply reply =
        gateway_.ask("/v3/kv/txn", txn.json(), Deadline(clock_, Millis(10'000)), Twice::Harmless);
    CHECK(reply && parse_txn(reply.body)->succeeded, "the transaction failed");
  }

 private:
  os::SystemClock clock_;
  std::unique_ptr<net::HttpClient> http_;
  Gateway gateway_;
  int count_ = 0;
};

int run() {
  if (const std::string why = test::EtcdCluster::missing(); !why.empty()) {
    std::fprintf(stderr, "%s\n", why.c_str());
    return 2;
  }
  test::EtcdCluster server;
  const auto started = server.start();
  CHECK(started.has_value(), started.has_value() ? "" : started.error().message.c_str());
  const std::string url = cat("etcd://", server.hosts());
  Bare bare(url);
  Client client(url);
  const api::Grip held = client.take("held");
  const auto txn = [&] { bare.transaction(); };
  const auto renew = [&] { client.renew(held); };
  for (int i = 0; i < 20; ++i) {
    txn();
    renew();
  }
  Took renewing = take_turns({renew, txn, 100, 5}, "etcd: renew", "gateway transaction");
  renewing.wall.goal = Goal::AtMost;
  renewing.wall.bound = 2.5;
  const auto pair = [&] { client.release(client.take("pair")); };
  const Took pairs = take_turns({pair, txn, 40, 5}, "etcd: acquire+release", "gateway transaction");
  print_header();
  const bool met = print(renewing.wall);
  print(renewing.quick);
  print(renewing.server);
  print(pairs.wall);
  print(pairs.server);
  return met ? 0 : 1;
}

}  // namespace
}  // namespace stint::bench

int main() { return stint::bench::run(); }
