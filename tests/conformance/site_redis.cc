#include "tests/conformance/site_redis.h"

#include "base/check.h"
#include "os/clock.h"
#include "os/pause.h"
#include "store/redis/redis_store.h"
#include "tests/support/servers.h"

namespace stint::testing {
namespace {

test::RedisServer& shared_server() {
  static const std::unique_ptr<test::RedisServer> server = [] {
    const std::string missing = test::RedisServer::missing();
    CHECK(missing.empty(), missing.c_str());
    auto made = std::make_unique<test::RedisServer>();
    const auto started = made->start();
    CHECK(started.has_value(), started ? "" : started.error().message.c_str());
    return made;
  }();
  return *server;
}

class RedisSite final : public Site {
 public:
  RedisSite() {
    static std::atomic<int> sites = 0;
    request_.timeout = Millis(30'000);
    request_.address.scheme = "redis";
    request_.address.hosts = {{"127.0.0.1", shared_server().port()}};
    request_.address.options["prefix"] = "site" + std::to_string(++sites);
  }
  std::unique_ptr<store::Store> open() override {
    auto store = store::RedisStore::open(request_);
    CHECK(store.has_value(), store ? "" : store.error().message.c_str());
    return std::move(*store);
  }
  const Clock& clock() const override { return clock_; }
  void tick() override { os::pause_for(Millis(2)); }
  Millis short_ttl() const override { return Millis(300); }

 private:
  store::OpenRequest request_;
  os::SystemClock clock_;
};

}  // namespace

std::unique_ptr<Site> make_redis_site() { return std::make_unique<RedisSite>(); }

}  // namespace stint::testing
