#include "bench/client.h"

#include "app/store_url.h"
#include "base/check.h"
#include "os/pause.h"
#include "service/store_life.h"
#include "store/do/do_store.h"
#include "store/etcd/etcd_store.h"
#include "store/postgres/postgres_store.h"
#include "store/redis/redis_store.h"
#include "store/sqlite/sqlite_store.h"
#include "tests/support/servers.h"

namespace stint::bench {
namespace {

constexpr Millis kTtl{60'000};
constexpr std::size_t kKeptEvents = 100'000;

template <class T>
T must(Result<T> result) {
  CHECK(result.has_value(), result.has_value() ? "" : result.error().message.c_str());
  return std::move(*result);
}

std::unique_ptr<store::Store> open(const std::string& text, const Clock& clock) {
  const auto url = must(app::parse_store_url(text));
  store::OpenRequest request;
  request.address = url;
  request.timeout = Millis(30'000);
  if (url.module == "postgres") return must(store::PostgresStore::open(request, clock));
  if (url.module == "redis") return must(store::RedisStore::open(request));
  if (url.module == "etcd") return must(store::etcd::EtcdStore::open(request, clock));
  if (url.module == "do") {
    request.key = test::WorkerdServer::kSecret;
    return must(store::durable::DoStore::open(request, clock));
  }
  store::SqliteOptions sqlite;
  sqlite.path = url.path;
  sqlite.clock_name = os::clock_name();
  return must(store::SqliteStore::open(sqlite, clock));
}

}  // namespace

Client::Client(const std::string& url)
    : store_(open(url, clock_)),
      ledger_(std::make_unique<service::Ledger>(*store_, clock_, kKeptEvents)),
      leases_(std::make_unique<service::LeaseService>(
          *store_, *ledger_,
          must(service::begin_life(*store_, random_, clock_.wall(), nullptr, {})), clock_, random_,
          nullptr)),
      queue_(std::make_unique<service::QueueService>(*store_, *ledger_, clock_, random_)) {}

std::optional<api::Grip> Client::try_take(const std::string& name) {
  const Claim claim = Claim::make(random_);
  const auto resource = must(ResourceName::parse(name));
  const auto owner = must(Owner::parse("bench"));
  const auto answer = must(leases_->acquire({.resource = resource,
                                             .owner = owner,
                                             .claim = claim,
                                             .terms = {.ttl = kTtl},
                                             .note = {},
                                             .retake = std::nullopt}));
  const auto* granted = std::get_if<api::Granted>(&answer);
  if (granted == nullptr) return std::nullopt;
  return api::Grip{resource, granted->lease.token, claim, owner, granted->hint};
}

api::Grip Client::take(const std::string& name) {
  auto grip = try_take(name);
  CHECK(grip.has_value(), "not granted");
  return std::move(*grip);
}

void Client::renew(const api::Grip& grip) {
  CHECK(std::holds_alternative<api::Held>(must(leases_->renew(grip, kTtl))), "not renewed");
}

void Client::release(const api::Grip& grip) {
  CHECK(std::holds_alternative<api::Held>(must(leases_->release(grip, false))), "not released");
}

api::Grip Client::wait_for(const std::string& name) {
  const auto watch = must(leases_->watch(must(ResourceName::parse(name))));
  while (true) {
    watch->acknowledge();
    if (auto grip = try_take(name)) return std::move(*grip);
    os::wait_readable({watch->fd()}, clock_.mono() + Millis(30'000));
  }
}

}  // namespace stint::bench
