#include "tests/conformance/site_do.h"

#include "base/check.h"
#include "base/text.h"
#include "os/clock.h"
#include "os/pause.h"
#include "store/do/do_store.h"
#include "tests/support/servers.h"

namespace stint::testing {
namespace {

// Started by the first site, ended with the process that started it.
test::WorkerdServer& workerd() {
  static test::WorkerdServer server;
  if (!server.running()) {
    const std::string missing = test::WorkerdServer::missing();
    CHECK(missing.empty(), missing.c_str());
    const auto started = server.start();
    CHECK(started.has_value(), started.has_value() ? "" : started.error().message.c_str());
  }
  return server;
}

class DoSite final : public Site {
 public:
  DoSite() {
    static int number = 0;
    request_.address.scheme = "do+http";
    request_.address.hosts.push_back({"127.0.0.1", workerd().port()});
    request_.address.path = cat("site-", ++number);
    request_.address.printable = cat(workerd().url(), '/', request_.address.path);
    request_.timeout = Millis(30'000);
    request_.key = test::WorkerdServer::kSecret;
  }
  std::unique_ptr<store::Store> open() override {
    auto store = store::durable::DoStore::open(request_, clock_);
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

std::unique_ptr<Site> make_do_site() { return std::make_unique<DoSite>(); }

}  // namespace stint::testing
