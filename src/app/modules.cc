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

}  // namespace

store::OpenedStore open_module_store(const std::string& kind, const store::OpenRequest& request,
                                     const Clock& clock) {
  const auto file = find_module(kind);
  if (!file) return file.error();
  const auto entry = os::load_function(*file, store::kModuleEntry);
  if (!entry) return entry.error();
  store::OpenedStore answer = unavailable(cat(quoted(*file), " gave no answer"));
  reinterpret_cast<store::ModuleEntry*> (*entry)(request, clock, &answer);
  return answer;
}

}  // namespace stint::app
