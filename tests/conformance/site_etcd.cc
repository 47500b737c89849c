#include "tests/conformance/site_etcd.h"

#include <unistd.h>

#include <algorithm>

#include "base/check.h"
#include "base/text.h"
#include "os/clock.h"
#include "os/pause.h"
#include "store/etcd/etcd_store.h"
#include "tests/support/servers.h"
#include "tests/support/slice.h"

namespace stint::testing {
namespace {

// One, or as many as STINT_ETCD_NODES says: `make soak` asks for three.
std::size_t nodes() {
  return static_cast<std::size_t>(std::max(test::asked("STINT_ETCD_NODES", 1), 1));
}

// Started by the first site, ended with the process that started it.
test::EtcdCluster& server() {
  static test::EtcdCluster etcd(nodes());
  if (!etcd.node(0).running()) {
    // A short election timeout, for the sake of short leases: the least ttl is made from it. Of
    // several nodes a longer one, or a busy machine has them elect all day.
    const std::string patience = nodes() == 1 ? "100" : "500";
    const std::string beat = nodes() == 1 ? "10" : "50";
    for (std::size_t i = 0; i < nodes(); ++i) {
      etcd.node(i).with({"--heartbeat-interval", beat, "--election-timeout", patience});
    }
    const auto started = etcd.start();
    CHECK(started.has_value(), started.has_value() ? "" : started.error().message.c_str());
  }
  return etcd;
}

class EtcdSite final : public Site {
 public:
  EtcdSite() {
    static int number = 0;
    request_.address.scheme = "etcd";
    for (std::size_t i = 0; i < nodes(); ++i) {
      request_.address.hosts.push_back({"127.0.0.1", server().node(i).port()});
    }
    request_.address.path = cat("site/", ++number);
    request_.timeout = Millis(30'000);
  }
  // Timers of an earlier test would move the revision of a later one.
  ~EtcdSite() override {
    const store::etcd::Keys keys(cat(request_.address.path, '/'));
    const auto http = net::make_http_client({}, clock_);
    store::etcd::Gateway gateway(store::etcd::settings_of(request_.address)->gateway, *http,
                                 clock_);
    gateway.ask("/v3/kv/txn", cat(R"({"success":[)", store::etcd::take_away(keys.all()).json, "]}"),
                store::etcd::Deadline(clock_, request_.timeout), store::etcd::Twice::Harmless);
  }
  std::unique_ptr<store::Store> open() override {
    auto store = store::etcd::EtcdStore::open(request_, clock_);
    CHECK(store.has_value(), store.has_value() ? "" : store.error().message.c_str());
    return std::move(*store);
  }
  const Clock& clock() const override { return clock_; }
  void tick() override { os::pause_for(Millis(10)); }
  Millis short_ttl() const override { return Millis(1000); }

 private:
  os::SystemClock clock_;
  store::OpenRequest request_;
};

}  // namespace

std::unique_ptr<Site> make_etcd_site() { return std::make_unique<EtcdSite>(); }

}  // namespace stint::testing
