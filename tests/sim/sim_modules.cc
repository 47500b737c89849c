// Instead of app/modules.cc: what the program loads from beside itself is linked here. Only the
// HTTP guard is; its Boost.Asio and libcurl are not (sim_net.h).
#include "app/modules.h"

namespace stint::app {
namespace {

Error not_here() { return unavailable("there are no modules in the simulation"); }

}  // namespace

guard::http::OpenedProxy open_module_proxy(const guard::http::ProxyRequest& request,
                                           const Clock& clock) {
  return guard::http::open_proxy(request, clock);
}
guard::http::ProxySealAnswer seal_by_module(const guard::http::ProxySeal& seal,
                                            const Clock& clock) {
  return guard::http::seal_proxy(seal, clock);
}
guard::http::ProxyCheckAnswer check_by_module(const guard::http::ProxyCheck& check,
                                              const Clock& clock) {
  return guard::http::check_proxy(check, clock);
}

store::OpenedStore open_module_store(const std::string& /*kind*/,
                                     const store::OpenRequest& /*request*/,
                                     const Clock& /*clock*/) {
  return not_here();
}
guard::OpenedPostgresGuard open_module_postgres_guard(const guard::PostgresTarget& /*target*/,
                                                      const Clock& /*clock*/) {
  return not_here();
}
server::OpenedPage open_module_page(const Clock& /*clock*/) { return not_here(); }
server::OpenedServer open_module_server(const server::ServeRequest& /*request*/,
                                        const Clock& /*clock*/) {
  return not_here();
}
client::OpenedClient connect_by_module(const client::ConnectRequest& /*request*/,
                                       const Clock& /*clock*/) {
  return not_here();
}
Status ask_doctor_by_module(const client::DoctorRequest& /*request*/, const Clock& /*clock*/) {
  return not_here();
}

}  // namespace stint::app
