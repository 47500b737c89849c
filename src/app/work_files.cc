#include "app/work_files.h"

#include <algorithm>

#include "base/text.h"
#include "os/files.h"

namespace stint::app {
namespace {

void set(std::vector<std::string>& environment, std::string_view name, std::string_view value) {
  const std::string begin = cat(name, '=');
  std::erase_if(environment, [&](const std::string& line) { return line.starts_with(begin); });
  environment.push_back(cat(begin, value));
}

}  // namespace

WorkFiles::WorkFiles(const Environment& environment, const Settings& settings, const Clock& clock,
                     Random& random)
    : files_(environment, settings, clock, random) {
  const std::string directory =
      settings.state_directory.empty() ? "/tmp" : cat(settings.state_directory, "/runs");
  const std::string stem = cat(directory, "/stint-", random.id_hex());
  payload_ = stem + ".payload";
  checkpoint_ = stem + ".checkpoint";
}

std::vector<std::string> WorkFiles::own_files() const {
  std::vector<std::string> out = files_.own_files();
  out.insert(out.end(), {payload_, checkpoint_});
  return out;
}

WorkFiles::~WorkFiles() {
  os::remove_file(payload_);
  os::remove_file(checkpoint_);
}

Result<std::string> WorkFiles::payload_file(const api::ClaimedItem& claimed) {
  if (auto made = os::make_directories(os::parent_of(payload_)); !made) return made.error();
  const auto keep = [](const std::string& path, const std::optional<std::string>& content) {
    os::remove_file(path);
    if (!content) return Status();
    return os::write_file(path, *content, os::Durability::Unsynced);
  };
  if (auto kept = keep(payload_, claimed.item.payload.value_or("")); !kept) return kept.error();
  if (auto kept = keep(checkpoint_, claimed.item.checkpoint); !kept) return kept.error();
  return payload_;
}

Result<std::vector<std::string>> WorkFiles::environment(
    const holder::RunRequest& request, const api::ClaimedItem& claimed, const holder::Taken& with,
    const std::string& payload_file, const Generation& generation, MonoTime deadline_at) {
  auto out = files_.environment(request, with, generation, deadline_at, true);
  if (!out) return out.error();
  const core::Item& item = claimed.item.item;
  set(*out, "STINT_ITEM", claimed.item.id.text());
  set(*out, "STINT_QUEUE", claimed.item.id.queue().text());
  set(*out, "STINT_EPOCH", cat(item.epoch.number()));
  set(*out, "STINT_ATTEMPT", cat(item.attempts));
  set(*out, "STINT_PAYLOAD_FILE", payload_file);
  set(*out, "STINT_CHECKPOINT_FILE", claimed.item.checkpoint ? checkpoint_ : "");
  set(*out, "STINT_PREVIOUS_PROGRESS", item.progress);
  return out;
}

}  // namespace stint::app
