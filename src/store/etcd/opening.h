// From a store URL to a server that can carry a store: options, version, layout.
#pragma once

#include <string>

#include "store/etcd/append_log.h"
#include "store/etcd/gateway.h"
#include "store/etcd/keys.h"
#include "store/module.h"

namespace stint::store::etcd {

// What the URL says.
struct Settings {
  std::string root;
  GatewayOptions gateway;
  net::TlsFiles tls;
};
// Code::Invalid: an option that makes no sense, or a file that cannot be read.
Result<Settings> settings_of(const Address& address);

// What is known of the server, for whoever examines the store.
struct ServerFacts {
  std::string version;
  // Empty, or why this version is not to be trusted with timers: etcd#15247, a leader that was
  // replaced while it was stuck still ended leases, early; etcd#12291, before 3.5 a wall clock that
  // is set back holds up the ends of leases that were granted before. G4
  std::string warning;

  std::vector<Finding> findings() const;
};
// Code::Unavailable: no etcd, or too old a one.
Result<ServerFacts> ask_facts(Gateway& gateway, const Deadline& deadline);
Result<ServerFacts> facts_of(std::string_view version);

// Finds the store's layout, or makes it. True: it was made.
Result<bool> find_or_make(const Keys& keys, Gateway& gateway, AppendLog& log,
                          const OpenRequest& request, const Deadline& deadline);

}  // namespace stint::store::etcd
