#include "tests/fault/history_grounds.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "app/store_url.h"
#include "base/check.h"
#include "base/text.h"
#include "os/clock.h"
#include "store/dir/dir_store.h"
#include "store/do/do_store.h"
#include "store/etcd/etcd_store.h"
#include "store/postgres/postgres_store.h"
#include "store/redis/redis_store.h"
#include "tests/support/mounts.h"

namespace stint::test {
namespace {

const Clock& the_clock() {
  static const os::SystemClock clock;
  return clock;
}

store::OpenRequest request_to(const std::string& url) {
  auto parsed = app::parse_store_url(url);
  CHECK(parsed.has_value(), "not a store URL");
  return {.address = *parsed, .timeout = Ground::kTimeout, .may_create = true};
}

template <class Opened>
store::OpenedStore as_store(Opened opened) {
  if (!opened) return opened.error();
  return std::unique_ptr<store::Store>(std::move(*opened));
}

class PostgresGround final : public Ground {
 public:
  explicit PostgresGround(Via via) : via_(via) {}
  Status start() override {
    if (auto started = server_.start(); !started) return started;
    if (via_ == Via::Proxy) put_proxies();
    return {};
  }
  store::OpenedStore open(int) override {
    return store::PostgresStore::open(
        request_to(cat("postgres://postgres@127.0.0.1:", port_to(0), "/postgres")), the_clock());
  }
  std::vector<Server*> servers() override { return {&server_}; }

 private:
  const Via via_;
  PostgresServer server_{{"max_connections=200"}};
};

class RedisGround final : public Ground {
 public:
  explicit RedisGround(Via via) : via_(via) {}
  Status start() override {
    if (auto started = server_.start(); !started) return started;
    if (via_ == Via::Proxy) put_proxies();
    return {};
  }
  store::OpenedStore open(int) override {
    return as_store(store::RedisStore::open(request_to(cat("redis://127.0.0.1:", port_to(0)))));
  }
  std::vector<Server*> servers() override { return {&server_}; }

 private:
  const Via via_;
  RedisServer server_;
};

class DoGround final : public Ground {
 public:
  explicit DoGround(Via via) : via_(via) {}
  Status start() override {
    if (auto started = server_.start(); !started) return started;
    if (via_ == Via::Proxy) put_proxies();
    return {};
  }
  store::OpenedStore open(int) override {
    auto request = request_to(cat("do+http://127.0.0.1:", port_to(0)));
    request.key = WorkerdServer::kSecret;
    return as_store(store::durable::DoStore::open(request, the_clock()));
  }
  // Longer than a client waits for an answer. A grant whose answer was lost must not end before its
  // client asks again: the service then tells of the next holder, and not that it had the lease.
  Millis ttl() const override { return Millis(2'000); }
  std::vector<Server*> servers() override { return {&server_}; }

 private:
  const Via via_;
  WorkerdServer server_;
};

class EtcdGround final : public Ground {
 public:
  explicit EtcdGround(Via via) : via_(via), cluster_(3) {}
  explicit EtcdGround(std::unique_ptr<NetworkNamespace> apart)
      : via_(Via::Straight),
        apart_(std::move(apart)),
        cluster_(std::vector<EtcdHome>{{.host = apart_->here()},
                                       {.host = apart_->here()},
                                       {.host = apart_->inside(), .enter = apart_->enter()}}) {}
  // Not politely: without a majority that takes its time.
  ~EtcdGround() override {
    for (Server* server : servers()) server->kill9();
  }
  Status start() override {
    if (auto started = cluster_.start(); !started) return started;
    if (via_ == Via::Proxy) put_proxies();
    return {};
  }
  // Each process begins with another node.
  store::OpenedStore open(int process) override {
    std::string hosts;
    for (std::size_t i = 0; i < cluster_.size(); ++i) {
      const std::size_t at = (i + static_cast<std::size_t>(process)) % cluster_.size();
      hosts += cat(hosts.empty() ? "" : ",", cluster_.node(at).host(), ':', port_to(at));
    }
    return as_store(store::etcd::EtcdStore::open(request_to("etcd://" + hosts), the_clock()));
  }
  Millis ttl() const override { return Millis(2'000); }
  std::vector<Server*> servers() override {
    return {&cluster_.node(0), &cluster_.node(1), &cluster_.node(2)};
  }
  NetworkNamespace* apart() override { return apart_.get(); }
  std::vector<std::uint16_t> peer_ports() override {
    std::vector<std::uint16_t> out;
    for (std::size_t i = 0; i < cluster_.size(); ++i) out.push_back(cluster_.node(i).peer_port());
    return out;
  }

 private:
  const Via via_;
  const std::unique_ptr<NetworkNamespace> apart_;
  EtcdCluster cluster_;
};

class DirGround final : public Ground {
 public:
  Status start() override {
    for (const char* name : {"shared", "here", "there"}) {
      std::filesystem::create_directory(folder_.file(name));
    }
    return {};
  }
  store::OpenedStore open(int process) override {
    if (const std::string why = Mount::missing(); !why.empty()) return unavailable(why);
    const std::string mounted = folder_.file(process % 2 == 0 ? "here" : "there");
    if (!mount_) mount_.emplace(MountPlan{.source = folder_.file("shared"), .target = mounted});
    if (!mount_->ok()) return unavailable("the directory cannot be mounted twice");
    store::DirOptions options;
    options.path = mounted + "/s";
    options.timeout = kTimeout;
    return as_store(store::DirStore::open(options, the_clock()));
  }
  // Asked in a process of its own: who asks enters a namespace.
  static std::string missing() {
    const pid_t child = ::fork();
    CHECK(child >= 0, "fork failed");
    if (child == 0) ::_exit(Mount::missing().empty() ? 0 : 1);
    int status = 0;
    ::waitpid(child, &status, 0);
    return status == 0 ? "" : "no mount namespace can be had";
  }

 private:
  TempDir folder_;
  std::optional<Mount> mount_;  // of a client's process
};

std::string namespace_or_etcd_missing() {
  const std::string why = EtcdCluster::missing();
  return why.empty() ? NetworkNamespace::missing() : why;
}

}  // namespace

void Ground::put_proxies() {
  for (const Server* server : servers()) {
    proxies_.push_back(std::make_unique<TcpProxy>(server->port()));
  }
}

std::uint16_t Ground::port_to(std::size_t server) {
  return proxies_.empty() ? servers()[server]->port() : proxies_[server]->port();
}

template <class Kind, Via via>
std::unique_ptr<Ground> make() {
  return std::make_unique<Kind>(via);
}

GroundKind postgres_ground(Via via) {
  return {PostgresServer::missing, via == Via::Proxy ? make<PostgresGround, Via::Proxy>
                                                     : make<PostgresGround, Via::Straight>};
}

GroundKind redis_ground(Via via) {
  return {RedisServer::missing,
          via == Via::Proxy ? make<RedisGround, Via::Proxy> : make<RedisGround, Via::Straight>};
}

GroundKind do_ground(Via via) {
  return {WorkerdServer::missing,
          via == Via::Proxy ? make<DoGround, Via::Proxy> : make<DoGround, Via::Straight>};
}

GroundKind etcd_ground(Via via) {
  return {EtcdCluster::missing,
          via == Via::Proxy ? make<EtcdGround, Via::Proxy> : make<EtcdGround, Via::Straight>};
}

GroundKind etcd_ground_in_namespace() {
  return {namespace_or_etcd_missing, []() -> std::unique_ptr<Ground> {
            return std::make_unique<EtcdGround>(std::make_unique<NetworkNamespace>());
          }};
}

GroundKind dir_ground() {
  return {DirGround::missing,
          []() -> std::unique_ptr<Ground> { return std::make_unique<DirGround>(); }};
}

}  // namespace stint::test
