#include "tests/conformance/site_postgres.h"

#include "base/check.h"
#include "base/text.h"
#include "os/clock.h"
#include "os/pause.h"
#include "store/postgres/postgres_store.h"
#include "tests/support/servers.h"

namespace stint::testing {
namespace {

// Lives as long as the test program. Without autovacuum: its transactions would hide appended
// records for a moment, as any other transaction does.
test::PostgresServer& server() {
  static test::PostgresServer* const started = [] {
    CHECK(test::PostgresServer::missing().empty(),
          "postgresql-15 is not installed: tools/setup.sh");
    static test::PostgresServer one({"autovacuum=off", "max_connections=300"});
    const auto status = one.start();
    CHECK(status.has_value(), status.has_value() ? "" : status.error().message.c_str());
    return &one;
  }();
  return *started;
}

class PostgresSite final : public Site {
 public:
  PostgresSite() {
    static int number = 0;
    request_.address.scheme = "postgres";
    request_.address.user = "postgres";
    request_.address.path = "postgres";
    request_.address.hosts = {{.name = "127.0.0.1", .port = server().port()}};
    request_.address.options["schema"] = cat("site_", ++number);
    request_.timeout = Millis(30'000);
  }
  std::unique_ptr<store::Store> open() override {
    auto store = store::PostgresStore::open(request_, clock_);
    CHECK(store.has_value(), store.has_value() ? "" : store.error().message.c_str());
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

std::unique_ptr<Site> make_postgres_site() { return std::make_unique<PostgresSite>(); }

}  // namespace stint::testing
