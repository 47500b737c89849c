// The configuration file. toml++ is slow to compile and throws: it stays in this one file.
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include "app/settings.h"
#include "base/text.h"
#include "os/files.h"

namespace stint::app {
namespace {

Error at(const std::string& path, const toml::source_region& where, std::string_view why) {
  return invalid(cat(path, ":", where.begin.line, ":", where.begin.column, ": ", why));
}

}  // namespace

Result<FileSettings> read_config(const std::string& path) {
  auto text = os::read_file(path);
  if (!text) return text.error();
  const toml::parse_result parsed = toml::parse(*text);
  if (!parsed) return at(path, parsed.error().source(), parsed.error().description());
  FileSettings out;
  for (const auto& [key, node] : parsed.table()) {
    std::optional<std::string>* target = nullptr;
    if (key.str() == "store") target = &out.store;
    if (key.str() == "ttl") target = &out.ttl;
    if (key.str() == "owner") target = &out.owner;
    if (target == nullptr) {
      return at(path, key.source(),
                cat("unknown key ", quoted(key.str()), " (known: store, ttl, owner)"));
    }
    const auto value = node.value<std::string>();
    if (!value || !node.is_string())
      return at(path, node.source(), cat(key.str(), " must be a string"));
    *target = *value;
  }
  return out;
}

}  // namespace stint::app
