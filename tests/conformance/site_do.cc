#include "tests/conformance/site_do.h"

#include <cstdlib>
#include <optional>

#include "app/store_url.h"
#include "base/check.h"
#include "base/text.h"
#include "os/clock.h"
#include "os/pause.h"
#include "os/random.h"
#include "store/do/do_store.h"
#include "tests/support/servers.h"

namespace stint::testing {
namespace {

// Started by the first site, ended with the process that started it.
test::WorkerdServer& workerd() {
  static test::WorkerdServer server;
  if (!server.running()) {
    const auto started = server.start();
    CHECK(started.has_value(), started.has_value() ? "" : started.error().message.c_str());
  }
  return server;
}

// `make conformance STORE=URL`: a server that runs already, with the secret of the environment.
std::optional<app::StoreUrl> asked_for() {
  const char* const url = std::getenv("STINT_CONFORMANCE_STORE");
  if (url == nullptr) return std::nullopt;
  auto parsed = app::parse_store_url(url);
  CHECK(parsed.has_value() && parsed->module == "do",
        "STORE is no URL of a server that answers the store protocol (do:, do+http:)");
  return *parsed;
}

class DoSite final : public Site {
 public:
  DoSite() {
    static int number = 0;
    request_.timeout = Millis(30'000);
    if (const auto url = asked_for()) {
      request_.address = *url;
      // Every site is a store that nobody has used.
      request_.address.path = cat("conformance-", os::SystemRandom().id_hex(), "-", ++number);
      const char* const key = std::getenv("STINT_KEY");
      request_.key = key == nullptr ? "" : key;
      return;
    }
    request_.address.scheme = "do+http";
    request_.address.hosts.push_back({"127.0.0.1", workerd().port()});
    request_.address.path = cat("site-", ++number);
    request_.address.printable = cat(workerd().url(), '/', request_.address.path);
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

std::string do_site_missing() {
  return asked_for() ? std::string() : test::WorkerdServer::missing();
}

std::unique_ptr<Site> make_do_site() { return std::make_unique<DoSite>(); }

}  // namespace stint::testing
