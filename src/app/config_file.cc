// The configuration file. toml++ is slow to compile and throws: it stays in this one file.
#define TOML_EXCEPTIONS 0
// "[[= 1" is an assertion in it, and an ordinary error a few lines further: a file must not end us.
#define TOML_ASSERT(expr) static_assert(true)
#include <toml++/toml.h>

#include "app/settings.h"
#include "base/text.h"
#include "base/toml_letters.h"
#include "os/files.h"
#include "schedule/config.h"

namespace stint::app {
namespace {

Error at(const std::string& path, const toml::source_region& where, std::string_view why) {
  return invalid(cat(path, ":", where.begin.line, ":", where.begin.column, ": ", why));
}

// [seal]: "blog-repo" = ["file:/srv/index.html"]
Status read_seal(const std::string& path, const toml::node& node, FileSettings& out) {
  const toml::table* table = node.as_table();
  if (table == nullptr) return at(path, node.source(), "seal must be a table");
  for (const auto& [resource, list] : *table) {
    const toml::array* targets = list.as_array();
    if (targets == nullptr) {
      return at(path, list.source(), cat("seal.", resource.str(), " must be a list of targets"));
    }
    for (const toml::node& target : *targets) {
      const auto text = target.value<std::string>();
      if (!text || !target.is_string()) {
        return at(path, target.source(), "a target must be a string");
      }
      out.seal[std::string(resource.str())].push_back(*text);
    }
  }
  return {};
}

// [serve]: listen = "127.0.0.1:7878", max_waiters = 100
Status read_serve(const std::string& path, const toml::node& node, FileSettings& out) {
  const toml::table* table = node.as_table();
  if (table == nullptr) return at(path, node.source(), "serve must be a table");
  for (const auto& [name, value] : *table) {
    std::string& here = out.serve[std::string(name.str())];
    if (const auto text = value.as_string()) {
      here = text->get();
    } else if (const auto number = value.as_integer()) {
      here = cat(number->get());
    } else {
      return at(path, value.source(), cat("serve.", name.str(), " must be a string or a number"));
    }
  }
  return {};
}

}  // namespace

Result<FileSettings> read_config(const std::string& path) {
  auto text = os::read_file(path);
  if (!text) return text.error();
  if (auto ok = check_toml_letters(*text, path); !ok) return ok.error();
  const toml::parse_result parsed = toml::parse(*text);
  if (!parsed) return at(path, parsed.error().source(), parsed.error().description());
  FileSettings out;
  for (const auto& [key, node] : parsed.table()) {
    if (key.str() == "seal") {
      if (auto read = read_seal(path, node, out); !read) return read.error();
      continue;
    }
    if (key.str() == "serve") {
      if (auto read = read_serve(path, node, out); !read) return read.error();
      continue;
    }
    if (key.str() == "queue") {
      auto queues = schedule::parse_queues(*text, path);
      if (!queues) return queues.error();
      out.queues = std::move(*queues);
      continue;
    }
    std::optional<std::string>* target = nullptr;
    if (key.str() == "store") target = &out.store;
    if (key.str() == "ttl") target = &out.ttl;
    if (key.str() == "owner") target = &out.owner;
    if (target == nullptr) {
      return at(path, key.source(),
                cat("unknown key ", quoted(key.str()),
                    " (known: store, ttl, owner, seal, serve, queue)"));
    }
    const auto value = node.value<std::string>();
    if (!value || !node.is_string())
      return at(path, node.source(), cat(key.str(), " must be a string"));
    *target = *value;
  }
  return out;
}

}  // namespace stint::app
