#include "app/modules.h"

#include <array>

#include "base/text.h"
#include "os/files.h"
#include "os/module_file.h"

namespace stint::app {
namespace {

Result<std::string> find_module(const std::string& kind) {
  const std::string name = cat("stint_", kind, ".so");
  const std::string here = os::program_directory();
  const std::array<std::string, 3> places = {here, cat(here, "/../", STINT_LIBDIR, "/stint"),
                                             cat(STINT_PREFIX, "/", STINT_LIBDIR, "/stint")};
  for (const std::string& place : places) {
    if (os::exists(cat(place, "/", name))) return cat(place, "/", name);
  }
  return unavailable(cat("this stint was installed without its module ", name, " (looked in ", here,
                         ", ", places[1], " and ", places[2], ")"));
}

// Calls the entry of the module. `Answer` is made by the entry itself.
template <class Entry, class Request, class Answer>
Answer call_module(const std::string& kind, const char* function, const Request& request,
                   const Clock& clock) {
  const auto file = find_module(kind);
  if (!file) return file.error();
  const auto entry = os::load_function(*file, function);
  if (!entry) return entry.error();
  Answer answer = unavailable(cat(quoted(*file), " gave no answer"));
  reinterpret_cast<Entry*> (*entry)(request, clock, &answer);
  return answer;
}

}  // namespace

store::OpenedStore open_module_store(const std::string& kind, const store::OpenRequest& request,
                                     const Clock& clock) {
  return call_module<store::ModuleEntry, store::OpenRequest, store::OpenedStore>(
      kind, store::kModuleEntry, request, clock);
}

guard::OpenedPostgresGuard open_module_postgres_guard(const guard::PostgresTarget& target,
                                                      const Clock& clock) {
  return call_module<guard::PostgresGuardEntry, guard::PostgresTarget, guard::OpenedPostgresGuard>(
      "postgres", guard::kPostgresGuardEntry, target, clock);
}

guard::http::OpenedProxy open_module_proxy(const guard::http::ProxyRequest& request,
                                           const Clock& clock) {
  return call_module<guard::http::ProxyEntry, guard::http::ProxyRequest, guard::http::OpenedProxy>(
      "http", guard::http::kProxyEntry, request, clock);
}

server::OpenedServer open_module_server(const server::ServeRequest& request, const Clock& clock) {
  return call_module<server::ServerEntry, server::ServeRequest, server::OpenedServer>(
      "http", server::kServerEntry, request, clock);
}

server::OpenedPage open_module_page(const Clock& clock) {
  return call_module<server::PageEntry, server::PageRequest, server::OpenedPage>(
      "page", server::kPageEntry, {}, clock);
}

client::OpenedClient connect_by_module(const client::ConnectRequest& request, const Clock& clock) {
  return call_module<client::ClientEntry, client::ConnectRequest, client::OpenedClient>(
      "http", client::kClientEntry, request, clock);
}

Status ask_doctor_by_module(const client::DoctorRequest& request, const Clock& clock) {
  return call_module<client::DoctorEntry, client::DoctorRequest, Status>(
      "http", client::kDoctorEntry, request, clock);
}

guard::http::ProxySealAnswer seal_by_module(const guard::http::ProxySeal& seal,
                                            const Clock& clock) {
  return call_module<guard::http::ProxySealEntry, guard::http::ProxySeal,
                     guard::http::ProxySealAnswer>("http", guard::http::kProxySealEntry, seal,
                                                   clock);
}

guard::http::ProxyCheckAnswer check_by_module(const guard::http::ProxyCheck& check,
                                              const Clock& clock) {
  return call_module<guard::http::ProxyCheckEntry, guard::http::ProxyCheck,
                     guard::http::ProxyCheckAnswer>("http", guard::http::kProxyCheckEntry, check,
                                                    clock);
}

}  // namespace stint::app
