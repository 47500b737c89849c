#include "app/run_files.h"

#include <algorithm>

#include "base/sha256.h"
#include "base/text.h"
#include "os/files.h"

namespace stint::app {

RunFiles::RunFiles(const Environment& environment, const Settings& settings, const Clock& clock,
                   Random& random)
    : environment_(environment), settings_(settings), clock_(clock) {
  if (settings.state_directory.empty()) return;
  const std::string stem = cat(settings.state_directory, "/runs/", random.id_hex());
  deadline_file_ = stem + ".deadline";
  // Without a secret in it, all runs on this store share one, and it stays.
  secret_ = settings.store_url.has_password;
  store_file_ = secret_
                    ? stem + ".store"
                    : cat(settings.state_directory, "/runs/",
                          to_hex(sha256(settings.store_url.absolute())).substr(0, 32), ".store");
}

std::vector<std::string> RunFiles::own_files() const {
  if (deadline_file_.empty()) return {};
  std::vector<std::string> out = {deadline_file_};
  if (secret_) out.push_back(store_file_);
  return out;
}

RunFiles::~RunFiles() {
  for (const std::string& path : own_files()) os::remove_file(path);
}

// A file that cannot be had costs the work a convenience, not its turn: what is missing is told.
std::string RunFiles::made(const std::string& path, const std::function<Status()>& keep) {
  if (path.empty()) return {};
  Status kept = os::make_directories(os::parent_of(path));
  if (kept) kept = keep();
  if (kept) return path;
  trouble_ = kept.error().message;
  return {};
}

Status RunFiles::keep_store_file() const {
  const std::string text = settings_.store_url.absolute() + "\n";
  if (secret_) return os::overwrite_file(store_file_, text);
  if (os::exists(store_file_)) return {};
  return os::write_file(store_file_, text, os::Durability::Unsynced);
}

std::int64_t RunFiles::wall_ms(MonoTime t) const {
  // Monotonic first: a pause between the two readings makes the deadline earlier, never later.
  const MonoTime now = clock_.mono();
  if (t == MonoTime::max()) return 0;
  return to_ms(clock_.wall() + std::chrono::floor<Millis>(t - now));
}

Status RunFiles::keep_deadline(MonoTime deadline) const {
  if (deadline == MonoTime::max()) return {};
  // Thirteen digits until the year 2286: always the same width. Only a hint.
  return os::overwrite_file(deadline_file_, cat(wall_ms(deadline), '\n'));
}

void RunFiles::deadline(MonoTime deadline) {
  if (deadline_file_.empty()) return;
  [[maybe_unused]] const bool kept = keep_deadline(deadline).has_value();
}

Result<std::vector<std::string>> RunFiles::environment(const holder::RunRequest& request,
                                                       const holder::Taken& taken,
                                                       const Generation& generation,
                                                       MonoTime deadline_at, bool tell_store) {
  ChildLeases leases;
  for (const holder::Kept& kept : taken.kept) {
    leases.innermost.push_back({kept.grip.resource, generation_of(taken, kept, generation),
                                kept.grip.token, kept.grip.claim});
  }
  // The first that was named leads; with --or it is the one that was free.
  if (!request.resources.empty()) {
    const auto first = std::ranges::find(leases.innermost, request.resources.front(),
                                         &holder::Ancestral::resource);
    if (first != leases.innermost.end()) std::iter_swap(leases.innermost.begin(), first);
  }
  leases.owner = request.owner;
  leases.deadline_ms = wall_ms(deadline_at);
  leases.deadline_file = made(deadline_file_, [&] { return keep_deadline(deadline_at); });
  if (tell_store) {
    leases.store = settings_.store_url.absolute_printable();
    leases.store_file = made(store_file_, [&] { return keep_store_file(); });
  }
  for (const api::Granted& grant : taken.grants) {
    if (leases.previous_progress.empty()) leases.previous_progress = grant.previous_progress;
  }
  return child_environment(environment_, request.ancestral, leases);
}

}  // namespace stint::app
