#include "store/file_rights.h"

#include <array>
#include <cstdio>

#include "base/text.h"
#include "os/directory.h"
#include "os/files.h"
#include "os/host.h"

namespace stint::store {
namespace {

using Level = Finding::Level;

constexpr unsigned kOthersWrite = 0002;
constexpr unsigned kSticky = 01000;
constexpr unsigned kModeBits = 07777;

std::string shown(const std::string& path, const os::FileFacts& facts) {
  std::array<char, 16> mode{};
  std::snprintf(mode.data(), mode.size(), "%04o", facts.mode & kModeBits);
  return cat(quoted(printable(path)), " (owner ", facts.owner, ", group ", facts.group, ", mode ",
             mode.data(), ")");
}

}  // namespace

Finding file_rights(const FilePlace& place) {
  std::string first;
  for (const std::string& path : place.own) {
    os::FileFacts facts;
    if (os::facts_of(path, facts) != 0) continue;
    const std::string told = shown(path, facts);
    if (!os::may_write(path)) {
      return {Level::Fail, "permissions",
              cat("the user ", os::user_name(), " may not write ", told)};
    }
    if ((facts.mode & kOthersWrite) != 0) {
      return {Level::Warn, "permissions",
              cat("everybody on this machine may write ", told,
                  ", and so change any lease: chmod o-w")};
    }
    if (first.empty()) first = told;
  }
  os::FileFacts around;
  if (!place.around.empty() && os::facts_of(place.around, around) == 0 &&
      (around.mode & kOthersWrite) != 0 && (around.mode & kSticky) == 0) {
    return {Level::Warn, "permissions",
            cat("everybody on this machine may replace files in ", shown(place.around, around),
                ", the store's too: chmod o-w")};
  }
  return {Level::Ok, "permissions",
          cat("the user ", os::user_name(), " may write ", first, "; others may not")};
}

}  // namespace stint::store
