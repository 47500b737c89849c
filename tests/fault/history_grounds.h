// Where the traffic of server_history.h takes place: a store with its servers, and what a fault
// script can lay hands on. A further store is one class here, and lines in the table of the test.
//
// Each object belongs to one thread; open() is called in the processes of the clients.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "store/module.h"
#include "tests/support/netns.h"
#include "tests/support/servers.h"
#include "tests/support/tcp_proxy.h"

namespace stint::test {

class Ground {
 public:
  virtual ~Ground() = default;
  virtual Status start() = 0;
  virtual store::OpenedStore open(int process) = 0;
  virtual Millis ttl() const { return Millis(400); }
  // Longer than this no call of a client takes.
  static constexpr Millis kTimeout{1'500};

  virtual std::vector<Server*> servers() { return {}; }
  // One before each server, in their order, where the clients go through them.
  const std::vector<std::unique_ptr<TcpProxy>>& proxies() const { return proxies_; }
  // The one in which the last server lives.
  virtual NetworkNamespace* apart() { return nullptr; }
  virtual std::vector<std::uint16_t> peer_ports() { return {}; }

 protected:
  void put_proxies();
  // Of the server, or of the proxy before it.
  std::uint16_t port_to(std::size_t server);

 private:
  std::vector<std::unique_ptr<TcpProxy>> proxies_;
};

enum class Via { Straight, Proxy };

// Why it cannot be had here; empty: it can.
struct GroundKind {
  std::string (*missing)();
  std::unique_ptr<Ground> (*make)();
};

GroundKind postgres_ground(Via via);
GroundKind redis_ground(Via via);  // appendfsync always
GroundKind etcd_ground(Via via);   // three nodes
GroundKind do_ground(Via via);
GroundKind etcd_ground_in_namespace();  // the third one in a network namespace
GroundKind dir_ground();                // through two mount points in two mount namespaces

}  // namespace stint::test
