// Where a setting comes from: flag, environment, file, default; in this order.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/queue.h"
#include "app/environment.h"
#include "app/store_url.h"

namespace stint::app {

struct Setting {
  std::string value;
  std::string source;  // "--store", "STINT_STORE", the path of the file, "default"
};

// Of stint.toml. `found`: nobody named that file, so whoever wrote it is not to be trusted with
// secrets.
struct JobsStore {
  Setting store;
  bool found = false;
};

// Flags that were given; empty: not given.
struct SettingFlags {
  std::optional<std::string> store;
  std::optional<std::string> owner;
  std::optional<std::string> ttl;
  std::optional<JobsStore> jobs_store = {};          // counts after the environment
  std::optional<std::string> config = std::nullopt;  // instead of the user's own file
};

struct Settings {
  Setting store;  // as given, with its password: print store_url.printable instead
  StoreUrl store_url;
  Setting ttl;
  std::optional<Setting> owner;  // empty: made up for each run
  std::string state_directory;
  std::string key;  // STINT_KEY, else what STINT_KEY_FILE names; never printed
  std::map<std::string, std::vector<std::string>> seal;  // by resource
  std::map<std::string, std::string> serve;              // of `stint serve`, by name
  std::vector<api::QueueConfig> queues;                  // [queue.NAME]
};

// Errors: also Denied, when a file that was found in the working folder chose a store to which a
// secret of the environment would go, and the user's own configuration does not name that store.
Result<Settings> resolve(const Environment& environment, const SettingFlags& flags);

// The parsed file's keys: store, ttl, owner, and the table seal: a list of targets by resource.
// Anything else is an error with line and column.
struct FileSettings {
  std::optional<std::string> store;
  std::optional<std::string> ttl;
  std::optional<std::string> owner;
  std::map<std::string, std::vector<std::string>> seal;
  std::map<std::string, std::string> serve = {};
  std::vector<api::QueueConfig> queues = {};
};
Result<FileSettings> read_config(const std::string& path);

}  // namespace stint::app
