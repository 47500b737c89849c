// Instead of os/files.cc: the program's own small files, which nothing of safety hangs on (the git
// guard's hints). They survive a process, and are written whole or not at all.
#include "base/text.h"
#include "os/files.h"
#include "tests/sim/sim_os.h"

namespace stint::os {
namespace {

using test::SimOs;

Error no_file(const std::string& path) { return unavailable(cat("there is no ", quoted(path))); }
bool alive() { return SimOs::present().scheduler().alive(); }

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t limit) {
  const auto& files = SimOs::present().files();
  const auto found = files.find(path);
  if (found == files.end() || found->second.size() > limit) return no_file(path);
  return found->second;
}
Status write_file(const std::string& path, std::string_view content, Durability /*durability*/,
                  unsigned /*mode*/) {
  if (!alive()) return no_file(path);
  SimOs::present().files()[path] = std::string(content);
  return {};
}
Status overwrite_file(const std::string& path, std::string_view content) {
  return write_file(path, content, Durability::Unsynced, 0600);
}
Status rename_file(const std::string& path, const std::string& new_path) {
  auto content = read_file(path, std::string::npos);
  if (!content) return content.error();
  remove_file(path);
  return write_file(new_path, *content, Durability::Unsynced, 0600);
}
Status make_file(const std::string& path, std::string_view content) {
  return exists(path) ? Status() : write_file(path, content, Durability::Unsynced, 0600);
}
Status link_over(const std::string& existing, const std::string& path) {
  auto content = read_file(existing, std::string::npos);
  if (!content) return content.error();
  return write_file(path, *content, Durability::Unsynced, 0600);
}
void remove_file(const std::string& path) {
  if (alive()) SimOs::present().files().erase(path);
}
bool exists(const std::string& path) { return SimOs::present().files().contains(path); }
bool may_write(const std::string& /*path*/) { return true; }
bool is_executable(const std::string& path) { return exists(path); }
Status make_directories(const std::string& /*path*/, unsigned /*mode*/) { return {}; }
std::optional<FileId> file_id(const std::string& /*path*/) { return std::nullopt; }

// What is told to a child through a file: nobody reads it here.
bool FixedFile::overwrite(const std::string& /*path*/, std::string_view /*content*/) {
  return true;
}
Result<std::optional<std::string_view>> FixedFile::look(const std::string& /*path*/,
                                                        std::span<char> /*out*/) {
  return std::optional<std::string_view>();
}
Result<Fd> open_to_read(const std::string& /*path*/) { return Fd(SimOs::present().open_event()); }
Result<Fd> open_to_append(const std::string& path) { return no_file(path); }
Result<std::string> read_descriptor(int /*fd*/, std::size_t /*most*/) { return std::string(); }

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}
std::string absolute(const std::string& path) {
  return path.starts_with('/') ? path : cat("/here/", path);
}
std::string without_detours(const std::string& path) { return path; }

}  // namespace stint::os
