#include "app/zones.h"

#include <algorithm>

#include "base/text.h"
#include "os/files.h"

namespace stint::app {
namespace {

// Letters, digits, '_', '+', '-', in parts between single slashes: nothing that leads elsewhere.
bool is_zone_name(const std::string& name) {
  constexpr std::size_t kLongest = 100;
  if (name.empty() || name.size() > kLongest) return false;
  return std::ranges::all_of(split(name, '/'), [](std::string_view part) {
    return !part.empty() && std::ranges::all_of(part, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '_' || c == '+' || c == '-';
    });
  });
}

}  // namespace

Result<core::Zone> find_zone(const std::string& name, const Environment& environment) {
  if (name == "UTC" || name == "Etc/UTC") return core::Zone();
  if (!is_zone_name(name)) {
    return invalid(cat(quoted(name.substr(0, 100)),
                       " is not the name of a time zone; they are like Europe/Berlin or UTC"));
  }
  const std::string directory = environment.get("TZDIR").value_or("/usr/share/zoneinfo");
  const std::string path = cat(directory, "/", name);
  const bool is_directory = os::exists(cat(path, "/."));
  if (!os::exists(path) || is_directory) {
    if (!os::exists(directory)) {
      return unavailable(cat("there is no time-zone database in ", printable(directory),
                             ": install the package tzdata, or set TZDIR"));
    }
    return invalid(cat("there is no time zone ", quoted(name), " in ", printable(directory),
                       "; names are like Europe/Berlin, large and small letters count"));
  }
  const auto content = os::read_file(path);
  if (!content) return Error(content.error()).during(cat("reading the time zone ", quoted(name)));
  auto zone = core::parse_tzif(*content);
  if (!zone) return Error(zone.error()).during(cat("reading the time zone ", quoted(name)));
  return zone;
}

}  // namespace stint::app
