#include "app/settings.h"

#include "app/job_file.h"
#include "app/state_files.h"
#include "base/text.h"
#include "os/files.h"

namespace stint::app {
namespace {

constexpr std::string_view kDefaultTtl = "90s";

// A child of `run` gets both: STINT_STORE without the password and a file with the whole. The file
// counts as long as it is the same store; a STINT_STORE that was changed since counts for itself.
Result<std::optional<Setting>> store_from_environment(const Environment& environment) {
  const auto plain = environment.get("STINT_STORE");
  const auto file = environment.get("STINT_STORE_FILE");
  if (!file) {
    if (!plain) return std::optional<Setting>();
    return std::optional<Setting>({*plain, "STINT_STORE"});
  }
  auto text = os::read_file(*file);
  if (!text) {
    // It goes with the run that made it; one that is there and cannot be read is a mistake.
    if (plain && !os::exists(*file)) return std::optional<Setting>({*plain, "STINT_STORE"});
    return std::move(text.error()).during("reading STINT_STORE_FILE");
  }
  const std::string whole(trim(*text));
  auto url = parse_store_url(whole);
  if (plain && url && url->printable != *plain)
    return std::optional<Setting>({*plain, "STINT_STORE"});
  return std::optional<Setting>({whole, "STINT_STORE_FILE"});
}

Result<std::string> key_from(const Environment& environment) {
  if (const auto key = environment.get("STINT_KEY")) return std::string(trim(*key));
  const auto file = environment.get("STINT_KEY_FILE");
  if (!file) return std::string();
  auto text = os::read_file(*file);
  // As any file that is named and cannot be read: the caller's mistake, not a store that is away.
  if (!text) return invalid(cat("reading STINT_KEY_FILE: ", text.error().message));
  return std::string(trim(*text));
}

Result<FileSettings> file_settings(const Environment& environment,
                                   const std::optional<std::string>& named, std::string& path) {
  if (named) {
    path = *named;
    return read_config(path);
  }
  auto found = config_file(environment);
  if (!found || !os::exists(*found)) return FileSettings{};
  path = *found;
  return read_config(path);
}

// The secret of the environment that would go to the store; empty: none.
std::string secret_for(const StoreUrl& url, const Environment& environment) {
  const auto first_set = [&](std::initializer_list<const char*> names) -> std::string {
    for (const char* name : names) {
      if (environment.get(name)) return name;
    }
    return {};
  };
  if (url.module == "http" || url.module == "do") {
    return first_set({"STINT_KEY", "STINT_KEY_FILE"});
  }
  if (url.module != "postgres") return {};
  // What libpq looks into by itself.
  if (url.options.contains("passfile")) return "passfile=";
  std::string set = first_set({"PGPASSWORD", "PGPASSFILE", "PGSERVICE", "PGSERVICEFILE"});
  if (!set.empty()) return set;
  const std::string kept = cat(environment.get("HOME").value_or(""), "/.pgpass");
  return os::exists(kept) ? kept : std::string();
}

// What the user's own files say of the store; empty: nothing.
std::vector<Setting> own_stores(const Environment& environment, const FileSettings& file,
                                const std::string& path) {
  std::vector<Setting> out;
  if (file.store) out.push_back({*file.store, path});
  const std::string jobs = own_job_file(environment);
  if (jobs.empty() || !os::exists(jobs)) return out;
  auto config = load_job_file(environment, jobs);
  if (config && config->store) out.push_back({*config->store, jobs});
  return out;
}

// A file that was merely found in the working folder may be anybody's: agents work in repositories
// that others wrote. Its store gets no secret of the environment, and is not even asked, unless the
// user's own file names the same one; then it is asked as that file says.
Result<Setting> trusted_store(const Environment& environment, const Setting& found,
                              const FileSettings& file, const std::string& path) {
  auto url = parse_store_url(found.value);
  if (!url) return found;  // told with its source by who reads it
  const std::string secret = secret_for(*url, environment);
  if (secret.empty()) return found;
  for (const Setting& own : own_stores(environment, file, path)) {
    auto same = parse_store_url(own.value);
    if (same && same->identity() == url->identity()) return own;
  }
  return Error{Code::Denied,
               cat(quoted(found.source), ", found in the working folder, chose the store ",
                   url->printable, ". What ", secret,
                   " holds is not shown to a store that a found file names, so nothing was sent. "
                   "If this store is meant, its user says so: STINT_STORE, or store in the user's "
                   "own configuration")};
}

Result<Setting> choose_store(const Environment& environment, const SettingFlags& flags,
                             const FileSettings& file, const std::string& path) {
  if (flags.store) return Setting{*flags.store, "--store"};
  auto from_environment = store_from_environment(environment);
  if (!from_environment) return from_environment.error();
  if (*from_environment) return **from_environment;
  if (flags.jobs_store && !flags.jobs_store->found) return flags.jobs_store->store;
  if (flags.jobs_store) return trusted_store(environment, flags.jobs_store->store, file, path);
  if (file.store) return Setting{*file.store, path};
  auto state = state_directory(environment);
  if (!state) return state.error();
  return Setting{cat("sqlite:", *state, "/stint.db"), "default"};
}

std::optional<Setting> choose_owner(const Environment& environment, const SettingFlags& flags,
                                    const FileSettings& file, const std::string& path) {
  if (flags.owner) return Setting{*flags.owner, "--owner"};
  for (const char* name : {"STINT_OWNER", "RUN_ID"}) {
    if (const auto value = environment.get(name)) return Setting{*value, name};
  }
  if (file.owner) return Setting{*file.owner, path};
  return std::nullopt;
}

}  // namespace

Result<Settings> resolve(const Environment& environment, const SettingFlags& flags) {
  std::string path;
  auto file = file_settings(environment, flags.config, path);
  if (!file) return file.error();
  Settings out;
  auto store = choose_store(environment, flags, *file, path);
  if (!store) return store.error();
  out.store = *store;
  auto url = parse_store_url(out.store.value);
  if (!url) return std::move(url.error()).during(cat("reading the store from ", out.store.source));
  out.store_url = *url;
  if (flags.store && url->has_password) {
    return invalid(
        "a password in --store is seen by everybody who lists processes: put the URL into "
        "STINT_STORE, or into a file named by STINT_STORE_FILE");
  }
  out.ttl = {std::string(kDefaultTtl), "default"};
  if (file->ttl) out.ttl = {*file->ttl, path};
  if (flags.ttl) out.ttl = {*flags.ttl, "--ttl"};
  out.seal = std::move(file->seal);
  out.serve = std::move(file->serve);
  out.queues = std::move(file->queues);
  out.owner = choose_owner(environment, flags, *file, path);
  auto key = key_from(environment);
  if (!key) return key.error();
  out.key = std::move(*key);
  // Without a home there are no claims and anchors, and a store that is named needs none.
  if (auto state = state_directory(environment); state) out.state_directory = *state;
  return out;
}

}  // namespace stint::app
