// The modules beside the program: stores whose libraries are not loaded at every start.
#pragma once

#include <string>

#include "base/result.h"
#include "client/client.h"
#include "client/doctor.h"
#include "guard/http/proxy.h"
#include "guard/sql/postgres_guard.h"
#include "server/server.h"
#include "store/module.h"

namespace stint::app {

// `kind`: "postgres", "redis", "etcd", "do". Looked for beside the program (a build folder), in
// ../lib/stint and ../lib/<architecture>/stint from there (an installed tree), and where this
// program was configured to be installed.
store::OpenedStore open_module_store(const std::string& kind, const store::OpenRequest& request,
                                     const Clock& clock);

// In the module "postgres", which has libpq.
guard::OpenedPostgresGuard open_module_postgres_guard(const guard::PostgresTarget& target,
                                                      const Clock& clock);

// In the module "http", which has Boost.Asio and libcurl.
guard::http::OpenedProxy open_module_proxy(const guard::http::ProxyRequest& request,
                                           const Clock& clock);
server::OpenedPage open_module_page(const Clock& clock);
server::OpenedServer open_module_server(const server::ServeRequest& request, const Clock& clock);
client::OpenedClient connect_by_module(const client::ConnectRequest& request, const Clock& clock);
Status ask_doctor_by_module(const client::DoctorRequest& request, const Clock& clock);
guard::http::ProxySealAnswer seal_by_module(const guard::http::ProxySeal& seal, const Clock& clock);
guard::http::ProxyCheckAnswer check_by_module(const guard::http::ProxyCheck& check,
                                              const Clock& clock);

}  // namespace stint::app
